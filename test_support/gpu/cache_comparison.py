"""Compare a cache with a fresh prefill of the same tokens, relative to the difference of two correct computations.

``fresh`` computes the prefill, and ``difference`` compares the two: every layer's keys and values, convolution and
recurrent states, and the number of tokens that the layer reports.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from transformers import EncoderDecoderCache, cache_utils

from test_support.gpu.caches import SOURCE, Kind, Rows, forward

HALF_OF_FLOAT64 = 2.0**-26
"""Half of the 52 stored bits of float64, relative to the largest entry: both sides sum the same products in different
groups, and what is met is nearer 1e-15."""
FLOAT32_ROUNDS_OTHERWISE = 2.0**-17
"""For models that go through float32 inside (normalisations, softmax): of two float64 sums next to a rounding boundary
one rounds up and the other down, 2^-23 apart. Two tiny layers have about 2^4 such places in a row, with two bits of
room; what is met is 1e-15, or 5e-8 where it happens, which depends on the processor's order of summation."""
HALF_OF_FLOAT32 = 2.0**-11
"""For models whose recurrence runs in float32 whatever the weights are."""
ALL_IN_FLOAT64 = ("gpt2", "bart")
SCANS_IN_FLOAT32 = ("mamba2", "falcon_h1")
DIFFERENT_LENGTH = float("inf")
VISIBLE = 1e-3
"""Planted mistakes are off by more than this."""


def bound(architecture: str) -> float:
    """Return how far apart two correct float64 computations of the architecture may be."""
    if architecture in ALL_IN_FLOAT64:
        return HALF_OF_FLOAT64
    return HALF_OF_FLOAT32 if architecture in SCANS_IN_FLOAT32 else FLOAT32_ROUNDS_OTHERWISE


# What a cache holds


def layers_of(held: Any) -> list[tuple[str, Any]]:
    """Return the layers by name: those that grow with every token, and those over the encoder's output."""
    if isinstance(held, EncoderDecoderCache):
        own, cross = held.self_attention_cache.layers, held.cross_attention_cache.layers
        return [
            *((f"{i} self", layer) for i, layer in enumerate(own)),
            *((f"{i} cross", layer) for i, layer in enumerate(cross)),
        ]
    return [(str(i), layer) for i, layer in enumerate(held.layers)]


def own_layers(held: Any) -> list[Any]:
    """Return the layers that have an entry for every fed token."""
    return held.self_attention_cache.layers if isinstance(held, EncoderDecoderCache) else held.layers


def is_recurrent(layer: Any) -> bool:
    return hasattr(layer, "conv_states")


def has_keys(layer: Any) -> bool:
    return getattr(layer, "keys", None) is not None


def states(layer: Any) -> dict[str, torch.Tensor]:
    """Return a layer's tensors by attribute name.

    Those with one entry per token are ``[batch, heads, positions, size]``.
    """
    found = {}
    if is_recurrent(layer):
        for i, state in layer.conv_states.items():
            if state is not None:
                kept = state[..., -layer.conv_kernel_size[i] :]
                missing = layer.conv_kernel_size[i] - kept.shape[-1]
                found[f"conv_states {i}"] = torch.nn.functional.pad(kept, (missing, 0))
        found |= {f"recurrent_states {i}": state for i, state in layer.recurrent_states.items() if state is not None}
    if has_keys(layer):
        found["keys"], found["values"] = entries(layer, "keys"), entries(layer, "values")
    return found


def entries(layer: Any, name: str) -> torch.Tensor:
    """Return the keys or values that the next token can attend to, oldest first."""
    tensor = getattr(layer, name)
    held = int(layer.get_seq_length())
    if isinstance(layer, cache_utils.QuantizedLayer) or hasattr(layer, "fp8_dtype"):
        stored = layer._dequantize(getattr(layer, f"_quantized_{name}"))
        return torch.cat([stored, tensor], dim=-2) if tensor.ndim == stored.ndim else stored
    if isinstance(layer, cache_utils.StaticLayer):
        tensor = tensor[..., : min(held, layer.max_cache_len), :]
    if layer.is_sliding:
        window = layer.sliding_window if hasattr(layer, "sliding_window") else layer.max_cache_len
        tensor = tensor[..., -min(window - 1, max(held, 1)) :, :]
    return tensor


# Against a prefill


class Snapshot(NamedTuple):
    """The contents of a cache by layer and name, the number of tokens that each layer reports, and the last logits."""

    states: dict[str, torch.Tensor]
    lengths: dict[str, int]
    logits: torch.Tensor | None = None


def snapshot(held: Any, logits: torch.Tensor | None = None) -> Snapshot:
    named = layers_of(held)
    return Snapshot(
        {f"{layer_name} {name}": state.clone() for layer_name, layer in named for name, state in states(layer).items()},
        {layer_name: int(layer.get_seq_length()) for layer_name, layer in named if has_keys(layer)},
        logits,
    )


def fresh(model: Any, kind: Kind, rows: Rows, source: Rows = (SOURCE,), before: int = 0) -> Snapshot:
    """Return the cache after a prefill of ``rows``, with its logits ``[batch, tokens, vocabulary]``.

    For a cache that rounds its entries, the first ``before`` tokens are fed first, and the rest in a second pass.
    """
    return _fresh(model, kind.new, rows, source, before if kind.prefill_in_two else 0)


@lru_cache(maxsize=4096)
def _fresh(model: Any, new: Any, rows: Rows, source: Rows, before: int) -> Snapshot:
    held = new(model)
    pieces = (tuple(row[:before] for row in rows), tuple(row[before:] for row in rows))
    logits = [forward(model, held, piece, source) for piece in pieces if piece[0]]
    return snapshot(held, torch.cat(logits, dim=1))


def relative_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest difference relative to the largest expected entry; infinite for other shapes or NaN."""
    if found.shape != expected.shape:
        return DIFFERENT_LENGTH
    if not expected.numel():
        return 0.0
    return min(DIFFERENT_LENGTH, float((found - expected).abs().max() / expected.abs().max()))


def difference(held: Any, expected: Snapshot) -> float:
    """Return the largest relative difference in any layer; infinite if the lengths, and so the positions, differ."""
    found = snapshot(held)
    if found.lengths != expected.lengths or found.states.keys() != expected.states.keys():
        return DIFFERENT_LENGTH
    return max(relative_difference(found.states[name], expected.states[name]) for name in expected.states)
