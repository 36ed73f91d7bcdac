"""Every cache class with every method of pruning it, and the architectures on which it is tested."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache, StaticCache, cache_utils

from test_support.gpu.cache_pruning import (
    by_library,
    by_library_always,
    by_reference,
    by_snapshot,
    by_tuples,
    by_tuples_of_four,
    recording,
)
from test_support.gpu.caches import SOURCE, Kind
from test_support.gpu.tiny_models import CONVOLUTION, ENCODER_DECODERS, FULL, RECURRENT, WINDOWS

CAPACITY = 32
"""Tokens a static cache has room for."""


def lazy(model: Any) -> Any:
    return DynamicCache()


def dynamic(model: Any) -> Any:
    return DynamicCache(config=model.config)


def static(model: Any) -> Any:
    return StaticCache(config=model.config, max_cache_len=CAPACITY)


def encoder_decoder(model: Any) -> Any:
    return EncoderDecoderCache(dynamic(model), dynamic(model))


def encoder_decoder_static(model: Any) -> Any:
    return EncoderDecoderCache(static(model), StaticCache(config=model.config, max_cache_len=len(SOURCE)))


class ExactlyQuantizedLayer(cache_utils.QuantizedLayer):
    """A quantized layer with a quantizer without loss: a difference is caused by the bookkeeping alone."""

    def __init__(self) -> None:
        """Set the layer to quantize after every 6 tokens."""
        super().__init__(residual_length=6)

    def _quantize(self, tensor: torch.Tensor, axis: int) -> torch.Tensor:  # noqa: ARG002 - the library's signature
        return tensor.clone()

    def _dequantize(self, q_tensor: torch.Tensor) -> torch.Tensor:
        return q_tensor


def exactly_quantized(model: Any) -> Any:
    return cache_utils.Cache(layers=[ExactlyQuantizedLayer() for _ in range(model.config.num_hidden_layers)])


def fp8(model: Any) -> Any:
    return cache_utils.QuantizedCache(backend="fp8", config=model.config)


HAS_FP8 = hasattr(cache_utils, "Fp8QuantizedLayer")
WITH_STATE = (*RECURRENT, *CONVOLUTION)
KINDS: tuple[Kind, ...] = (
    Kind("DynamicCache()", "library", lazy, by_library, (*FULL, *WINDOWS)),
    Kind("DynamicCache()", "reference", lazy, by_reference, (*FULL, *WINDOWS)),
    Kind("DynamicCache()", "tuples", lazy, by_tuples, (*FULL, *WINDOWS)),
    Kind("DynamicCache(config)", "library", dynamic, by_library, (*WINDOWS, *WITH_STATE)),
    Kind("DynamicCache(config)", "reference", dynamic, by_reference, (*WINDOWS, *WITH_STATE)),
    Kind("DynamicCache(config)", "tuples", dynamic, by_tuples, WINDOWS),
    Kind("DynamicCache(config)", "snapshot", dynamic, by_snapshot, (*WINDOWS, *WITH_STATE), copy.deepcopy),
    Kind(
        "DynamicCache(config) recording",
        "library",
        dynamic,
        by_library_always,
        (*WINDOWS, *WITH_STATE),
        recording,
    ),
    Kind("DynamicCache(config) recording", "reference", dynamic, by_reference, (*WINDOWS, *WITH_STATE), recording),
    Kind("StaticCache", "library", static, by_library, (*FULL, *WINDOWS)),
    Kind("StaticCache", "reference", static, by_reference, (*FULL, *WINDOWS)),
    Kind("StaticCache", "snapshot", static, by_snapshot, (*FULL, *WINDOWS), copy.deepcopy),
    Kind("EncoderDecoderCache dynamic", "library", encoder_decoder, by_library, ENCODER_DECODERS),
    Kind("EncoderDecoderCache dynamic", "reference", encoder_decoder, by_reference, ENCODER_DECODERS),
    Kind("EncoderDecoderCache dynamic", "tuples", encoder_decoder, by_tuples_of_four, ENCODER_DECODERS),
    Kind("EncoderDecoderCache static", "library", encoder_decoder_static, by_library, ENCODER_DECODERS),
    Kind("EncoderDecoderCache static", "reference", encoder_decoder_static, by_reference, ENCODER_DECODERS),
    Kind("QuantizedLayer, exact quantizer", "library", exactly_quantized, by_library, ("llama", "gpt2")),
    Kind("QuantizedLayer, exact quantizer", "reference", exactly_quantized, by_reference, ("llama", "gpt2")),
    Kind("QuantizedCache fp8", "library", fp8, by_library, ("llama", "gpt2"), prefill_in_two=True),
    Kind("QuantizedCache fp8", "reference", fp8, by_reference, ("llama", "gpt2"), prefill_in_two=True),
)
DYNAMIC, STATIC = "DynamicCache(), reference", "StaticCache, reference"


def kind(name: str) -> Kind:
    """Return the cache kind with this name."""
    return next(kind for kind in KINDS if kind.name == name)
