"""Tiny models of several architectures, each built from its real config class with seeded weights.

Nothing is downloaded.

An architecture is data: the names of two classes of transformers, the entries of the config beside the vocabulary size,
and the rule that fills the weights. ``build_model`` is the whole recipe, so a script that reproduces a finding can be
printed from the data. The scales give next-token pmfs that are far from uniform and depend on the whole context, as in
trained models. So a wrong cache entry, position or row has a visible effect.

Not covered: mixtures of experts, position biases other than T5's, and every kernel that needs a GPU.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, NamedTuple

from specverify.engines.huggingface.install import INSTALL
from specverify.reference.types import Tokens

try:
    import torch
    import transformers
except ImportError as error:
    raise ImportError(f"tiny Hugging Face models need torch and transformers: {INSTALL}") from error

WEIGHT_SCALE = 0.7
"""Standard deviation of every weight matrix: 16 normalised hidden units make logits of standard deviation 2.8."""

WINDOW = 4
"""Length of sliding windows. It is below the five tokens of a prompt, so caches drop entries from the first pass on."""


class Architecture(NamedTuple):
    """A model: the entries of its config, the rule for its weights, and the names of two classes of transformers.

    ``config`` and ``model`` are the names of the config class and the model class.
    """

    config: str
    model: str
    options: dict[str, Any]
    """Arguments of the config class except ``vocab_size``; special tokens are None unless the class requires them."""
    scale: float = WEIGHT_SCALE
    """Standard deviation of every weight of two dimensions or more."""
    fills: tuple[tuple[str, float], ...] = ()
    """(name suffix, value): one-dimensional weights with this suffix get this value.

    Other biases are 0, other vectors 1.
    """


_COMMON: dict[str, Any] = {
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
    "tie_word_embeddings": False,
}
_DECODER: dict[str, Any] = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}
_GEMMA: dict[str, Any] = {
    **_DECODER,
    "head_dim": 8,
    "query_pre_attn_scalar": 8,
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}
_UNIT_OFFSET = (("norm.weight", 0.0),)
"""Gemma's norms multiply by one plus their weight."""

ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture("LlamaConfig", "LlamaForCausalLM", _DECODER | _COMMON),
    "gpt2": Architecture(
        "GPT2Config", "GPT2LMHeadModel", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64} | _COMMON
    ),
    # with biases of 0 this would be the Llama above
    "qwen2": Architecture("Qwen2Config", "Qwen2ForCausalLM", _DECODER | _COMMON, fills=(("proj.bias", 0.5),)),
    "mistral": Architecture(
        "MistralConfig", "MistralForCausalLM", _DECODER | _COMMON | {"sliding_window": WINDOW}, scale=0.55
    ),
    "gemma2": Architecture("Gemma2Config", "Gemma2ForCausalLM", _GEMMA | _COMMON, fills=_UNIT_OFFSET),
    "gemma3": Architecture("Gemma3TextConfig", "Gemma3ForCausalLM", _GEMMA | _COMMON, fills=_UNIT_OFFSET),
    # encoder-decoders: the prompt goes to the encoder, and the decoder needs a token to start from
    "t5": Architecture(
        "T5Config",
        "T5ForConditionalGeneration",
        {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0} | _COMMON,
        scale=0.45,
    ),
    "bart": Architecture(
        "BartConfig",
        "BartForConditionalGeneration",
        {
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "max_position_embeddings": 64,
            "decoder_start_token_id": 0,
            "forced_eos_token_id": None,
        }
        | _COMMON,
        scale=0.55,
    ),
    # state spaces and hybrids: what their cache holds cannot simply be cut shorter
    "mamba2": Architecture(
        "Mamba2Config",
        "Mamba2ForCausalLM",
        {
            "hidden_size": 16,
            "state_size": 4,
            "num_hidden_layers": 2,
            "num_heads": 4,
            "head_dim": 8,
            "n_groups": 1,
            "chunk_size": 4,
        }
        | _COMMON,
        scale=0.45,
    ),
    "falcon_h1": Architecture(
        "FalconH1Config",
        "FalconH1ForCausalLM",
        {
            "head_dim": 8,
            "mamba_d_ssm": 16,
            "mamba_n_heads": 2,
            "mamba_d_head": 8,
            "mamba_d_state": 4,
            "mamba_n_groups": 1,
            "mamba_chunk_size": 4,
        }
        | _DECODER
        | _COMMON,
        scale=0.45,
    ),
    "lfm2": Architecture(
        "Lfm2Config",
        "Lfm2ForCausalLM",
        {"layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False} | _DECODER | _COMMON,
        scale=0.45,
    ),
}
"""Decoders with full, sliding and alternating attention, encoder-decoders, a state space and two hybrids."""


def build_model(architecture: str, vocabulary: int, seed: int) -> Any:
    """Return a float32 model in eval mode on the CPU; equal arguments give equal weights.

    ``architecture`` is a key of ``ARCHITECTURES``, ``vocabulary`` the number of tokens, and ``seed`` selects the
    weights. No special token is set. Raises ``ValueError`` for an unknown architecture or fewer than 2 tokens.
    """
    if architecture not in ARCHITECTURES:
        raise ValueError(f"the architecture is {architecture!r}, expected one of {', '.join(ARCHITECTURES)}")
    if vocabulary < 2:
        raise ValueError(f"the vocabulary has {vocabulary} tokens, expected at least 2")
    return copy.deepcopy(_first_model(architecture, vocabulary, seed))


@lru_cache(maxsize=8)
def _first_model(architecture: str, vocabulary: int, seed: int) -> Any:
    """Return the model of these arguments that is copied, which takes half of the time of building one."""
    row = ARCHITECTURES[architecture]
    with torch.random.fork_rng(devices=[]):
        config = getattr(transformers, row.config)(vocab_size=vocabulary, **row.options)
        model = getattr(transformers, row.model)(config)
    return fill(model, seed, row.scale, row.fills)


def fill(model: Any, seed: int, scale: float = WEIGHT_SCALE, fills: tuple[tuple[str, float], ...] = ()) -> Any:
    """Overwrite every weight of ``model`` in place and return the model in eval mode.

    Matrices are normal with standard deviation ``scale``, drawn by ``seed``; biases are 0 and other vectors 1.
    ``fills`` has exceptions for vectors: (end of the name, value), of which the first match counts.
    """
    generator = torch.Generator().manual_seed(seed)
    chosen = (*fills, ("bias", 0.0), ("", 1.0))
    with torch.no_grad():
        for name, weights in sorted(model.named_parameters()):
            if weights.ndim > 1:
                weights.normal_(0, scale, generator=generator)
            else:
                weights.fill_(next(value for end, value in chosen if name.endswith(end)))
    return model.eval()


def next_logits(model: Any, prompt: Tokens, new: Tokens) -> Any:
    """Return the float32 logits ``[vocabulary]`` of the token after ``new``, by one pass of ``model`` without a cache.

    A decoder gets the prompt and the new tokens. In an encoder-decoder only the encoder gets the prompt.
    """
    with torch.no_grad():
        if model.config.is_encoder_decoder:
            started = [[model.config.decoder_start_token_id, *new]]
            return model(input_ids=torch.tensor([prompt]), decoder_input_ids=torch.tensor(started)).logits[0, -1]
        return model(input_ids=torch.tensor([[*prompt, *new]])).logits[0, -1]
