"""Tiny models for drafters of transformers that need more than a second model of the same kind.

Each builder returns new models with seeded weights, made with the library's own classes; nothing is downloaded:
multi-token prediction (``generate(use_mtp=True)``), block drafts from hidden states (``speculation_type="dflash"``), a
Gemma 4 assistant that reads the target's keys and values, and a pair of models with different tokenizers. Early exit
(``assistant_early_exit``) needs no builder: any model whose forward stops after ``config.num_hidden_layers`` layers
drafts for itself, as Llama does.

Not covered: released checkpoints, assistants with their own encoders, Gemma's ordered embeddings, several devices.

The parameter ``vocabulary`` of the builders is the number of tokens of a model, and ``seed`` selects its weights.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from specverify.engines.huggingface.architectures import ARCHITECTURES, WINDOW, build_model, fill
from specverify.engines.huggingface.install import INSTALL

try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers.modeling_layers import MtpModel
except ImportError as error:
    raise ImportError(f"tiny drafting models need torch and transformers: {INSTALL}") from error

TARGET_ALPHABET = "abcde"
ASSISTANT_ALPHABET = "xdcbya"
"""Four letters in common, under other ids and in another order; one is the target's alone, two the assistant's."""

_library: Any = transformers
"""The library without type annotations, because its constructors are only partly annotated."""

SOFT_SCALE = 0.45
"""Standard deviation of weights where ``WEIGHT_SCALE`` would make pmfs close to one-hot."""

_DECODER = ARCHITECTURES["llama"].options
_EXPERTS = {"num_experts_per_tok": 1, "moe_intermediate_size": 16}


class Tokenizers(NamedTuple):
    """Two tokenizers with one token per character, each with a model of the same vocabulary size.

    ``target`` and ``assistant`` are the models; ``target_tokenizer`` and ``assistant_tokenizer`` are their tokenizers.
    """

    target: Any
    assistant: Any
    target_tokenizer: Any
    assistant_tokenizer: Any


def mtp_target(vocabulary: int, seed: int, layers: int = 1) -> Any:
    """Return a target with ``layers`` layers for multi-token prediction, each of which drafts a token.

    ``seed`` sets its random weights. With one layer it is a Mellum, with more a GLM-4 MoE. It is saved to a temporary
    directory, which lives as long as the model, because the library reads the layers from the checkpoint at every
    ``generate``. Raises ``ValueError`` for fewer than one layer.
    """
    if layers < 1:
        raise ValueError(f"the model has {layers} layers for multi-token prediction, expected at least 1")
    made = _mellum(vocabulary) if layers == 1 else _glm4_moe(vocabulary, layers)
    model, directory = fill(made, seed, SOFT_SCALE), tempfile.TemporaryDirectory()
    model.save_pretrained(directory.name)
    checkpoint = Path(directory.name) / "model.safetensors"
    with torch.random.fork_rng(devices=[]):
        mtp = fill(MtpModel(model, layers), seed + 1, SOFT_SCALE)
    saved = load_file(checkpoint)
    for name, weights in mtp.state_dict().items():
        if name.startswith("layers."):
            saved[_checkpoint_name(name, model)] = weights.contiguous()
    save_file(saved, checkpoint, metadata={"format": "pt"})
    loaded = type(model).from_pretrained(directory.name)
    if layers > 1:
        loaded._keys_to_ignore_on_load_unexpected = model._keys_to_ignore_on_load_unexpected  # noqa: SLF001
    weakref.finalize(loaded, directory.cleanup)
    return loaded.eval()


def dflash_assistant(target: Any, seed: int, block: int = 3) -> Any:
    """Return an assistant that drafts ``block - 1`` tokens at once from the hidden states of both layers of ``target``.

    ``seed`` sets its random weights. It uses the embeddings and the head of the target. Raises ``ValueError`` for a
    block of fewer than two tokens.
    """
    if block < 2:
        raise ValueError(f"the block has {block} tokens, expected at least 2: the last known one and one to draft")
    config = _library.MuseGlimmerAssistantConfig(
        **{name: value for name, value in _DECODER.items() if name != "tie_word_embeddings"},
        head_dim=8,
        sliding_window=16,
        block_size=block,
        mask_token_id=target.config.vocab_size - 1,
        target_layer_ids=[0, 1],
        layer_types=["full_attention", "full_attention"],
    )
    with torch.random.fork_rng(devices=[]):
        return fill(_library.MuseGlimmerAssistantModel(config), seed)


def gemma4_pair(vocabulary: int, seed: int, drafts: int = 2, *, repaired: bool = True) -> tuple[Any, Any]:
    """Return a Gemma 4 target and an assistant that drafts ``drafts`` tokens.

    ``seed`` sets their random weights. The layers in the upper half of the target share keys and values, and the
    assistant attends to these. transformers 5.23.0 cannot build such an assistant: its config requires that every layer
    shares keys and values, but the code of its layers requires a layer that does not. With ``repaired`` the requirement
    of the config is patched; otherwise the library's ``ValueError`` is raised.
    """
    text: dict[str, Any] = {
        **_DECODER,
        "vocab_size": vocabulary,
        "head_dim": 8,
        "global_head_dim": 8,
        "sliding_window": WINDOW,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
    }
    kinds, inputs = (
        ["sliding_attention", "full_attention"],
        {"hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": vocabulary},
    )
    shared = _library.Gemma4TextConfig(
        **text | {"num_hidden_layers": 4, "layer_types": kinds * 2, "num_kv_shared_layers": 2, **inputs}
    )
    config = _library.Gemma4AssistantConfig(
        text_config=_library.Gemma4TextConfig(**text, layer_types=kinds, num_kv_shared_layers=2),
        backbone_hidden_size=shared.hidden_size,
        tie_word_embeddings=False,
    )
    with torch.random.fork_rng(devices=[]):
        target = _library.Gemma4ForCausalLM(shared)
        with _all_layers_reuse() if repaired else nullcontext():
            assistant = _library.Gemma4AssistantForCausalLM(config)
    assistant.generation_config.num_assistant_tokens = drafts
    assistant.generation_config.num_assistant_tokens_schedule = "constant"
    return fill(target, seed, SOFT_SCALE), fill(assistant, seed + 1, SOFT_SCALE)


def two_tokenizers(seed: int, *, alphabet: str = ASSISTANT_ALPHABET, order: str | None = None) -> Tokenizers:
    """Return a target of five tokens and an assistant with the letters of ``alphabet``, each with a tokenizer, all new.

    ``seed`` sets the random weights. Build a new pair for every call, because ``generate`` changes the assistant.

    ``order`` is a permutation of ``alphabet``, the order in which the assistant's tokenizer lists its vocabulary; with
    None it is arbitrary. In transformers 5.23.0 the law of the call equals the target's only if this order is that of
    the token ids. Raises ``ValueError`` if ``order`` has other letters than ``alphabet``.
    """
    if sorted(order or alphabet) != sorted(alphabet):
        raise ValueError(f"the order is {order!r}, expected the letters of {alphabet!r} rearranged")
    assistant_tokenizer = _characters(alphabet)
    if order is not None:
        assistant_tokenizer.get_vocab = lambda: {letter: alphabet.index(letter) for letter in order}
    return Tokenizers(
        build_model("llama", len(TARGET_ALPHABET), seed),
        build_model("llama", len(alphabet), seed + 1),
        _characters(TARGET_ALPHABET),
        assistant_tokenizer,
    )


def _mellum(vocabulary: int) -> Any:
    return _library.MellumForCausalLM(
        _library.MellumConfig(
            **_DECODER,
            **_EXPERTS,
            vocab_size=vocabulary,
            head_dim=8,
            num_experts=2,
            sliding_window=WINDOW,
            layer_types=["sliding_attention", "full_attention"],
            num_mtp_layers=1,
        )
    )


def _glm4_moe(vocabulary: int, layers: int) -> Any:
    config = _library.Glm4MoeConfig(
        **_DECODER,
        **_EXPERTS,
        vocab_size=vocabulary,
        n_routed_experts=2,
        first_k_dense_replace=2,
        num_mtp_layers=layers,
    )
    model = _library.Glm4MoeForCausalLM(config)
    own = range(config.num_hidden_layers, config.num_hidden_layers + layers)
    model._keys_to_ignore_on_load_unexpected = [rf"model\.layers\.{number}\." for number in own]  # noqa: SLF001
    return model


def _checkpoint_name(name: str, model: Any) -> str:
    """Return the name that a weight of a prediction layer has in the released checkpoints of the class of ``model``.

    ``name`` is the name of the weight in ``model``.
    """
    if isinstance(model, _library.MellumForCausalLM):
        return f"mtp.{name}"
    _, number, rest = name.split(".", 2)
    return f"model.layers.{model.config.num_hidden_layers + int(number)}.{rest.removeprefix('mtp_block.')}"


@contextmanager
def _all_layers_reuse() -> Iterator[None]:
    kind: Any = _library.Gemma4TextConfig
    asked = kind.kv_sharing_modes
    kind.kv_sharing_modes = property(lambda config: ["reuse"] * config.num_hidden_layers)
    try:
        yield
    finally:
        kind.kv_sharing_modes = asked


def _characters(alphabet: str) -> Any:
    tokenizer = Tokenizer(models.WordLevel({letter: number for number, letter in enumerate(alphabet)}, alphabet[0]))
    letters: Any = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Split("", "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(letters)  # a space is no token: the library asks for its sign
    return _library.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
