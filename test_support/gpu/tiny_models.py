"""Tiny transformers models with seeded weights, one of every architecture, and the kinds of their attention and state.

``real_model`` returns one in a given dtype and attention, narrow or wide; ``model_of`` returns the narrow one as built.
"""

from __future__ import annotations

import copy
import importlib.util
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from transformers.utils import is_flash_attn_2_available

from specverify.engines.huggingface.architectures import ARCHITECTURES as ALL_ARCHITECTURES
from specverify.engines.huggingface.architectures import build_model, fill

ARCHITECTURES = ("llama", "gpt2", "qwen2", "mistral", "gemma2", "gemma3", "t5", "bart")
"""Full, sliding (mistral) and alternating (gemma2, gemma3) attention; t5 and bart are encoder-decoders."""
ABSOLUTE_OR_ROTARY = ("llama", "gpt2", "qwen2", "mistral", "gemma2", "gemma3")
"""Models that take position ids."""
ANY_MASK = ("llama", "gpt2", "qwen2")
"""Models whose attention follows mask and position ids alone, so that a cache may have holes."""
FULL = ("llama", "gpt2", "qwen2")
WINDOWS = ("mistral", "gemma2", "gemma3")
ENCODER_DECODERS = ("t5", "bart")
RECURRENT = ("mamba2", "falcon_h1")
CONVOLUTION = ("lfm2",)
ATTENTIONS = ("eager", "sdpa", "flash_attention_2")
KERNELS = {
    "mamba2": ("mamba_ssm", "causal_conv1d"),
    "falcon_h1": ("mamba_ssm", "causal_conv1d"),
    "lfm2": ("causal_conv1d",),
}
"""Packages whose kernels transformers runs, where they are installed, in the place of its own operations."""
VOCABULARY = 11
WIDE_VOCABULARY = 500
WIDER = 8
"""Factor of every size of a wide model: sums of 128 and 256 products, which kernels group by the number of rows."""
SIZES = ("hidden_size", "intermediate_size", "n_embd", "d_model", "d_ff", "encoder_ffn_dim", "decoder_ffn_dim")
HEAD_SIZES = ("head_dim", "query_pre_attn_scalar", "d_kv")


@cache
def model_of(architecture: str, device: torch.device, dtype: torch.dtype = torch.float64, seed: int = 0) -> Any:
    """Return the tiny model of an architecture on ``device``; skip the test if kernels replace operations of torch."""
    installed = [package for package in KERNELS.get(architecture, ()) if importlib.util.find_spec(package)]
    if installed:
        pytest.skip(f"{architecture} runs kernels of {' and '.join(installed)}, which have no {dtype}")
    return build_model(architecture, VOCABULARY, seed).to(device=device, dtype=dtype)


@cache
def real_model(
    architecture: str, seed: int, dtype: torch.dtype, attention: str, device: torch.device, *, wide: bool = False
) -> Any:
    """Return a tiny model with seeded weights; skip the test, with the reason, if it lacks the attention.

    ``wide`` makes the model ``WIDER`` times as wide, and divides the scale of its weights by the square root of this
    factor.
    """
    if attention == "flash_attention_2" and (not is_flash_attn_2_available() or dtype.itemsize > 2):
        pytest.skip("flash_attention_2 needs its own package, a CUDA device and a dtype of 16 bits")
    built = wide_model(architecture, seed) if wide else build_model(architecture, VOCABULARY, seed)
    model = built.to(device=device, dtype=dtype)
    try:
        model.set_attn_implementation(attention)
    except ValueError as error:
        pytest.skip(str(error).split(" yet.")[0])
    return model


def wide_model(architecture: str, seed: int) -> Any:
    """Return a model of the recipe of ``build_model`` with ``WIDER`` sizes and ``WIDE_VOCABULARY`` tokens."""
    row = ALL_ARCHITECTURES[architecture]
    sizes = {name: size * WIDER for name, size in row.options.items() if name in (*SIZES, *HEAD_SIZES)}
    options = {**row.options, **sizes, "vocab_size": WIDE_VOCABULARY}
    with torch.random.fork_rng(devices=[]):
        model = getattr(transformers, row.model)(getattr(transformers, row.config)(**options))
    return fill(model, seed, row.scale / WIDER**0.5, row.fills)


@cache
def in_float64(model: Any) -> Any:
    """Return a model that computes in float64 with eager attention, with the same rounded weights.

    The result is cached, so a model must not change afterwards. A norm that the library hard-codes in float32 stays in
    float32; therefore the logits of the copy are accurate to about 1e-6, not 1e-15.
    """
    widened = copy.deepcopy(model).to(torch.float64)
    widened.set_attn_implementation("eager")
    return widened
