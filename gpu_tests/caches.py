"""Caches of real models under speculation: how each class is filled, pruned, and compared with a fresh prefill.

A ``Kind`` is a cache class with one way of pruning it. ``Held`` is a cache together with the tokens that were fed into
it, one row per sequence of the batch. ``fresh`` is what a prefill of the same tokens computes, and ``difference``
compares the two: every layer's keys and values, convolution and recurrent states, and how many tokens it says it holds.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache, EncoderDecoderCache, StaticCache, cache_utils

from reference.kv_cache import check_croppable, crop, window_crop
from reference.types import Tokens
from specverify.subjects.huggingface_architectures import build_model

VOCABULARY = 11
CAPACITY = 32
"""Tokens a static cache has room for."""
SOURCE = (2, 7, 1, 8)
"""What the encoder of an encoder-decoder reads."""
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

FULL = ("llama", "gpt2", "qwen2")
WINDOWS = ("mistral", "gemma2", "gemma3")
ENCODER_DECODERS = ("t5", "bart")
RECURRENT = ("mamba2", "falcon_h1")
CONVOLUTION = ("lfm2",)
Rows = tuple[Tokens, ...]


def bound(architecture: str) -> float:
    """How far apart two correct float64 computations of the architecture may be."""
    if architecture in ALL_IN_FLOAT64:
        return HALF_OF_FLOAT64
    return HALF_OF_FLOAT32 if architecture in SCANS_IN_FLOAT32 else FLOAT32_ROUNDS_OTHERWISE


@cache
def model_of(architecture: str, device: torch.device, dtype: torch.dtype = torch.float64, seed: int = 0) -> Any:
    """The tiny model of an architecture on ``device``."""
    return build_model(architecture, VOCABULARY, seed).to(device=device, dtype=dtype)


class Kind(NamedTuple):
    """A cache class and how it is pruned."""

    cache: str
    pruned_by: str
    new: Callable[[Any], Any]
    """An empty cache for a model."""
    prune: Callable[[Held, int], None]
    """Shorten a cache to a number of tokens."""
    models: tuple[str, ...]
    remember: Callable[[Any], Any] = lambda cache: None
    """Called before drafts are fed; what it returns is kept for ``prune``."""
    prefill_in_two: bool = False
    """Storage that rounds is compared with a cache that never saw the rejected drafts and was fed in the same parts."""

    @property
    def name(self) -> str:
        """The cells of its rows in the table."""
        return f"{self.cache}, {self.pruned_by}"


@dataclass
class Held:
    """A model's cache, and the tokens that were fed into it ``[batch, held]``."""

    model: Any
    kind: Kind
    fed: Rows = ((),)
    cache: Any = None
    remembered: Any = None
    before_drafts: int = 0
    source: Rows = field(default=(SOURCE,))

    def __post_init__(self) -> None:
        if self.cache is None:
            self.cache = self.kind.new(self.model)

    @property
    def held(self) -> int:
        """How many tokens were fed and not pruned."""
        return len(self.fed[0])

    def feed(self, rows: Rows, **options: Any) -> torch.Tensor:
        """Feed more tokens and return their logits ``[batch, tokens, vocabulary]``."""
        logits = forward(self.model, self.cache, rows, self.source, **options)
        self.fed = tuple(row + more for row, more in zip(self.fed, rows, strict=True)) if self.held else rows
        return logits

    def before_drafting(self) -> None:
        """Say that what is fed from now on may have to go."""
        self.remembered, self.before_drafts = self.kind.remember(self.cache), self.held

    def prune(self, keep: int) -> None:
        """Forget every token but the first ``keep``."""
        self.kind.prune(self, keep)
        self.fed = tuple(row[:keep] for row in self.fed)

    def reorder(self, rows: list[int]) -> None:
        """Let row ``rows[i]`` become row i in the cache, its snapshot, the encoder's input and the record."""
        indices = torch.tensor(rows, device=self.model.device)
        if self.held:
            self.cache.reorder_cache(indices)
        else:  # the library leaves an emptied cache as it is, with the number of rows it had
            self.cache = self.kind.new(self.model)
            self.remembered = self.kind.remember(self.cache)
        if self.remembered is not None:
            self.remembered.reorder_cache(indices)
        self.fed, self.source = (tuple(of[row] for row in rows) for of in (self.fed, self.source))

    def copy(self) -> Held:
        """The same, sharing nothing but the model."""
        return Held(
            self.model,
            self.kind,
            self.fed,
            copy.deepcopy(self.cache),
            copy.deepcopy(self.remembered),
            self.before_drafts,
            self.source,
        )


def forward(model: Any, held: Any, rows: Rows, source: Rows, **options: Any) -> torch.Tensor:
    """One forward of ``rows`` on top of a cache; an encoder-decoder's encoder reads ``source``, row by row."""
    ids = torch.tensor(rows, device=model.device)
    if model.config.is_encoder_decoder:
        read = torch.tensor(source, device=model.device)
        options |= {"input_ids": read, "decoder_input_ids": ids, "past_key_values": held}
    else:
        of_state_space = model.config.model_type == "mamba2"
        options |= {"input_ids": ids, "cache_params" if of_state_space else "past_key_values": held}
    with torch.no_grad():
        return model(use_cache=True, **options).logits


# What a cache holds


def layers_of(held: Any) -> list[tuple[str, Any]]:
    """The layers that grow with every token, and those over the encoder's output, by name."""
    if isinstance(held, EncoderDecoderCache):
        own, cross = held.self_attention_cache.layers, held.cross_attention_cache.layers
        return [
            *((f"{i} self", layer) for i, layer in enumerate(own)),
            *((f"{i} cross", layer) for i, layer in enumerate(cross)),
        ]
    return [(str(i), layer) for i, layer in enumerate(held.layers)]


def own_layers(held: Any) -> list[Any]:
    """The layers that hold an entry for every token fed."""
    return held.self_attention_cache.layers if isinstance(held, EncoderDecoderCache) else held.layers


def is_recurrent(layer: Any) -> bool:
    return hasattr(layer, "conv_states")


def has_keys(layer: Any) -> bool:
    return getattr(layer, "keys", None) is not None


def states(layer: Any) -> dict[str, torch.Tensor]:
    """What a layer keeps, by the name of its attribute; per-token entries are ``[batch, heads, positions, size]``."""
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
    """The keys or values that the next token can attend to, oldest first."""
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


class Snapshot(NamedTuple):
    """Everything in a cache by layer and name, how many tokens each layer says it holds, and the last logits."""

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
    """What a prefill of ``rows`` leaves in an empty cache, and its logits ``[batch, tokens, vocabulary]``.

    Storage that rounds is fed the tokens ``before`` the drafts first, and the rest behind them.
    """
    return _fresh(model, kind.new, rows, source, before if kind.prefill_in_two else 0)


@lru_cache(maxsize=4096)
def _fresh(model: Any, new: Any, rows: Rows, source: Rows, before: int) -> Snapshot:
    held = new(model)
    pieces = (tuple(row[:before] for row in rows), tuple(row[before:] for row in rows))
    logits = [forward(model, held, piece, source) for piece in pieces if piece[0]]
    return snapshot(held, torch.cat(logits, dim=1))


def relative_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference relative to the largest expected entry; infinite for other shapes or not a number."""
    if found.shape != expected.shape:
        return DIFFERENT_LENGTH
    if not expected.numel():
        return 0.0
    return min(DIFFERENT_LENGTH, float((found - expected).abs().max() / expected.abs().max()))


def difference(held: Any, expected: Snapshot) -> float:
    """The largest relative difference in any layer; infinite where lengths, and with them positions, are not equal."""
    found = snapshot(held)
    if found.lengths != expected.lengths or found.states.keys() != expected.states.keys():
        return DIFFERENT_LENGTH
    return max(relative_difference(found.states[name], expected.states[name]) for name in expected.states)


# Pruning


def by_library(held: Held, keep: int) -> None:
    """The library removes a negative number of entries; nothing is called where nothing is to go."""
    if held.held > keep:
        held.cache.crop(keep - held.held)


def by_library_always(held: Held, keep: int) -> None:
    """A cache that recorded what left its windows is told also when nothing goes: it then forgets the record.

    An empty one is left alone: with nothing in it, a window of the library raises AttributeError even for 0.
    """
    if held.held:
        held.cache.crop(keep - held.held)


def by_reference(held: Held, keep: int) -> None:
    """Crop keys and values by ``reference``, whatever the class; what holds no entry per token is refused by name."""
    if keep == held.held:
        return
    for layer in own_layers(held.cache):
        check_croppable([name.split()[0] for name in states(layer)])
    for layer in own_layers(held.cache):
        crop_layer(layer, held.held, keep)


def crop_layer(layer: Any, held: int, keep: int) -> None:
    if hasattr(layer, "fp8_dtype"):
        for name in ("_quantized_keys", "_quantized_values"):
            stored, scale = getattr(layer, name)
            setattr(layer, name, (crop(stored, keep), scale))
        layer.cumulative_length = keep
    elif isinstance(layer, cache_utils.QuantizedLayer):
        kept = {name: crop(entries(layer, name), keep) for name in ("keys", "values")}
        layer._quantized_keys = layer._quantize(kept["keys"], layer.axis_key)
        layer._quantized_values = layer._quantize(kept["values"], layer.axis_value)
        layer.keys, layer.values = kept["keys"].new_zeros(0), kept["values"].new_zeros(0)
        layer.cumulative_length = keep
    elif isinstance(layer, cache_utils.StaticLayer):
        if layer.is_sliding:
            window_crop(held, min(held, layer.max_cache_len - 1), keep, layer.max_cache_len)
            layer.cumulative_length_int = keep
        layer.cumulative_length.fill_(keep)  # entries behind the length are masked, and overwritten by the next feed
    elif layer.is_sliding:
        kept = window_crop(held, layer.keys.shape[-2], keep, layer.sliding_window)
        layer.keys, layer.values = layer.keys[..., kept, :], layer.values[..., kept, :]
        layer.cumulative_length = keep
    else:
        layer.keys, layer.values = crop(layer.keys, keep), crop(layer.values, keep)


def by_tuples(held: Held, keep: int) -> None:
    """Take keys and values out as nested tuples, crop each, and build a cache from them again."""
    if keep == held.held:
        return
    config = held.model.config if held.cache.layer_class_to_replicate is None else None
    held.cache = DynamicCache([_cropped(pair[:2], keep) for pair in held.cache], config=config)


def by_tuples_of_four(held: Held, keep: int) -> None:
    """An encoder-decoder's tuple holds keys and values over its own tokens, and then those over the encoder's."""
    if keep == held.held:
        return
    quadruples = [(*_cropped(layer[:2], keep), *layer[3:5]) for layer in held.cache]
    held.cache = EncoderDecoderCache(quadruples)


def _cropped(pair: tuple[torch.Tensor, ...], keep: int) -> tuple[torch.Tensor, ...]:
    return tuple(crop(tensor, min(keep, tensor.shape[-2])) for tensor in pair)


def by_snapshot(held: Held, keep: int) -> None:
    """Restore the copy from before the drafts and feed what was accepted once more."""
    if keep == held.held:
        return
    again = tuple(row[held.before_drafts : keep] for row in held.fed)
    held.cache = copy.deepcopy(held.remembered)
    if again[0]:
        forward(held.model, held.cache, again, held.source)


def recording(cache: Any) -> None:
    cache.activate_past_recording()


# Classes


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
    """The bookkeeping of a quantized layer around a quantizer that loses nothing: what differs is the bookkeeping's."""

    def __init__(self) -> None:
        """Quantize whenever 6 tokens have come since the last time."""
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


def kind(name: str) -> Kind:
    """The kind of that name."""
    return next(kind for kind in KINDS if kind.name == name)
