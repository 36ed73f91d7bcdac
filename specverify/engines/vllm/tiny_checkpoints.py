"""Tiny checkpoints with seeded weights: the target Llama, whose law is known, and its drafters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from specverify.laws.llama import Array, Llama, LlamaSizes, random_llama

SIZES: Final = LlamaSizes(vocabulary=8, width=64, inner=96, layers=2, heads=2, kv_heads=1, head_width=32)
"""Sizes of the models, with the smallest heads that the attention of the CPU build supports."""
SPREAD: Final = 2.0
LETTERS: Final = ("a", "b", "c", "d", "e", "f", "g", "</s>")
END: Final = 7
THINKING: Final = (4, 2)
"""The tokens that start and end thinking, in engines that are configured for it."""
POSITIONS: Final = 512
NOISE: Final = 0.1
"""Share of noise in the draft model's weights, with which about half of its tokens are accepted."""

NARROW: Final = (1, 4, 5)
"""The tokens that the narrow draft model can draw."""
LIFT, FAR = 8.0, 120.0
"""The constant feature of the narrow draft model, and its weight in the logits of all other tokens."""


@lru_cache(maxsize=4)
def target() -> Llama:
    """Return the target model, a tiny Llama with seeded weights, whose law is computed."""
    return random_llama(1, SIZES, spread=SPREAD)


@lru_cache(maxsize=4)
def draft(noise: float = NOISE) -> Llama:
    """Return the draft model, whose matrices are ``sqrt(1 - noise ** 2) * W + noise * V``.

    W is the matrix of the target and V that of another random model. Vectors are those of the target.
    """
    ours, other = target(), random_llama(2, SIZES, spread=SPREAD)
    mixed = {
        name: (np.sqrt(1 - noise**2) * value + noise * other.weights[name]).astype(np.float32)
        if value.ndim == 2
        else value
        for name, value in ours.weights.items()
    }
    return Llama(SIZES, mixed)


def _config(**more: Any) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": SIZES.vocabulary,
        "hidden_size": SIZES.width,
        "intermediate_size": SIZES.inner,
        "num_hidden_layers": SIZES.layers,
        "num_attention_heads": SIZES.heads,
        "num_key_value_heads": SIZES.kv_heads,
        "head_dim": SIZES.head_width,
        "max_position_embeddings": POSITIONS,
        "rms_norm_eps": SIZES.epsilon,
        "rope_theta": SIZES.theta,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "bos_token_id": None,
        "eos_token_id": END,
        "hidden_act": "silu",
        **more,
    }


Checkpoint = tuple[dict[str, Any], Mapping[str, Array]]


def _target() -> Checkpoint:
    return _config(), target().weights


def _draft() -> Checkpoint:
    return _config(), draft().weights


def _narrow() -> Checkpoint:
    """Return a draft model whose pmf is 0 in float32 for all tokens but ``NARROW``."""
    weights = {name: value.copy() for name, value in draft().weights.items()}
    for name, value in weights.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            value[0] = 0
    weights["model.embed_tokens.weight"][:, 0] = LIFT
    weights["lm_head.weight"][:, 0] = -FAR
    weights["lm_head.weight"][list(NARROW), 0] = 0
    return _config(), weights


def _layer(prefix: str, model: Llama) -> dict[str, Array]:
    start = "model.layers.1."
    return {prefix + name.removeprefix(start): value for name, value in model.weights.items() if name.startswith(start)}


def _through(columns: int, place: int) -> Array:
    """Return the weight ``[width, columns * width]`` of a layer that reads ``columns`` concatenated hidden states.

    The layer returns the hidden state with the index ``place``, plus a small random linear function of all.
    """
    numbers = np.random.default_rng(3)
    mixed = 0.1 * numbers.standard_normal((SIZES.width, columns * SIZES.width)) / np.sqrt(SIZES.width)
    mixed[:, place * SIZES.width : (place + 1) * SIZES.width] += np.eye(SIZES.width)
    return np.asarray(mixed, np.float32)


def _eagle() -> Checkpoint:
    """Return EAGLE's head: a layer that mixes embedding and hidden state, and one layer of the draft model."""
    layer = _layer("layers.0.", draft())
    del layer["layers.0.input_layernorm.weight"]
    return _config(architectures=["EagleLlamaForCausalLM"], num_hidden_layers=1), {"fc.weight": _through(2, 1), **layer}


def _eagle3(vocabulary: int = SIZES.vocabulary) -> Checkpoint:
    """Return EAGLE-3's head for ``vocabulary`` draft tokens.

    Its layer reads embeddings and a mixture of hidden states.
    """
    layer, width = _layer("midlayer.", draft()), SIZES.width
    for name in ("q", "k", "v"):
        key = f"midlayer.self_attn.{name}_proj.weight"
        layer[key] = np.concatenate((layer[key], layer[key]), 1)
    layer["midlayer.hidden_norm.weight"] = np.ones(width, np.float32)
    chosen = np.arange(SIZES.vocabulary - vocabulary, SIZES.vocabulary)
    weights = {
        "fc.weight": _through(3, 2),
        **layer,
        "norm.weight": np.ones(width, np.float32),
        "lm_head.weight": draft().weights["lm_head.weight"][chosen],
        "embed_tokens.weight": target().weights["model.embed_tokens.weight"],
    }
    more: dict[str, Any] = {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}
    if vocabulary != SIZES.vocabulary:
        weights["d2t"] = chosen - np.arange(vocabulary)
        weights["t2d"] = np.isin(np.arange(SIZES.vocabulary), chosen)
        more["draft_vocab_size"] = vocabulary
    return _config(architectures=["LlamaForCausalLMEagle3"], num_hidden_layers=1, **more), weights


def _medusa() -> Checkpoint:
    """Return Medusa's heads: one residual block each, with the draft model's output head."""
    numbers, head = np.random.default_rng(4), draft().weights["lm_head.weight"]
    heads = range(2)
    weights = {f"blocks.{i}.layers.0.weight": 0.1 * numbers.standard_normal((SIZES.width,) * 2) for i in heads}
    weights |= {f"lm_heads.{i}.weight": head for i in heads}
    config = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": SIZES.width,
        "vocab_size": SIZES.vocabulary,
        "num_heads": len(heads),
        "num_hidden_layers": 1,
        "torch_dtype": "float32",
    }
    return config, {name: value.astype(np.float32) for name, value in weights.items()}


CHECKPOINTS: Final[Mapping[str, Callable[[], Checkpoint]]] = {
    "target": _target,
    "draft": _draft,
    "narrow draft": _narrow,
    "eagle": _eagle,
    "eagle3": _eagle3,
    "eagle3 of five tokens": lambda: _eagle3(5),
    "medusa": _medusa,
}
"""Name -> function that returns configuration and weights under the names that vLLM loads."""
