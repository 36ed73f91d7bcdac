"""The methods of pruning a cache to the kept tokens: the library's, the reference's, by tuples, by a snapshot."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache, cache_utils

from reference.kv_cache import check_croppable, crop, window_crop
from test_support.gpu.cache_comparison import entries, own_layers, states
from test_support.gpu.caches import Held, forward


def by_library(held: Held, keep: int) -> None:
    """Crop by the library's method, which takes a negative number of entries; it is not called if none is removed."""
    if held.held > keep:
        held.cache.crop(keep - held.held)


def by_library_always(held: Held, keep: int) -> None:
    """Crop by the library's method, also if nothing is removed.

    A cache that records what left its windows then forgets the record. An empty cache is not cropped: the library's
    window raises AttributeError in it, even for 0.
    """
    if held.held:
        held.cache.crop(keep - held.held)


def by_reference(held: Held, keep: int) -> None:
    """Crop keys and values by ``reference`` for any cache class.

    Layers without an entry per token are refused by name.
    """
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
    """Take keys and values out as nested tuples, crop each, and build a new cache from them."""
    if keep == held.held:
        return
    config = held.model.config if held.cache.layer_class_to_replicate is None else None
    held.cache = DynamicCache([_cropped(pair[:2], keep) for pair in held.cache], config=config)


def by_tuples_of_four(held: Held, keep: int) -> None:
    """Crop the tuples of an encoder-decoder: keys and values of its own tokens, then those of the encoder's."""
    if keep == held.held:
        return
    quadruples = [(*_cropped(layer[:2], keep), *layer[3:5]) for layer in held.cache]
    held.cache = EncoderDecoderCache(quadruples)


def _cropped(pair: tuple[torch.Tensor, ...], keep: int) -> tuple[torch.Tensor, ...]:
    return tuple(crop(tensor, min(keep, tensor.shape[-2])) for tensor in pair)


def by_snapshot(held: Held, keep: int) -> None:
    """Restore the copy from before the drafts, and feed the accepted tokens again."""
    if keep == held.held:
        return
    again = tuple(row[held.before_drafts : keep] for row in held.fed)
    held.cache = copy.deepcopy(held.remembered)
    if again[0]:
        forward(held.model, held.cache, again, held.source)


def recording(cache: Any) -> None:
    cache.activate_past_recording()
