"""Mistakes planted in the pruning of a cache: each is found at the accepted lengths at which it is one.

The control of each is the same round without the mistake. Differences are those of ``cache_comparison``, in float64;
planted mistakes are off by more than ``VISIBLE``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from reference.kv_cache import crop
from test_support.gpu.cache_comparison import VISIBLE, bound, difference, fresh, own_layers, relative_difference
from test_support.gpu.cache_kinds import DYNAMIC, STATIC, kind
from test_support.gpu.cache_pruning import crop_layer
from test_support.gpu.cache_rounds import DRAFTS, EMITTED, KNOWN, before_pruning, rounds
from test_support.gpu.caches import Held, Kind
from test_support.gpu.tiny_models import FULL, RECURRENT, WINDOWS, model_of


def planted(good: Kind, prune: Callable[[Kind, Held, int], None], **changes: Any) -> Kind:
    return good._replace(prune=lambda held, keep: prune(good, held, keep), **changes)


def keep_one_more(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, min(keep + 1, held.held))


def keep_one_less(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, keep - 1)


def negative_zero(good: Kind, held: Held, keep: int) -> None:
    surplus = held.held - keep
    for layer in own_layers(held.cache):
        layer.keys, layer.values = layer.keys[..., :-surplus, :], layer.values[..., :-surplus, :]


def nothing(good: Kind, held: Held, keep: int) -> None:
    """Planted bug: rejected drafts stay in the cache."""


def stale_positions(good: Kind, held: Held, keep: int) -> None:
    """Planted bug: the entries are cropped, but not the count of tokens from which positions are computed."""
    good.prune(held, keep)
    for layer in own_layers(held.cache):
        if hasattr(layer, "cumulative_length"):
            layer.cumulative_length = held.held


def cross_attention_too(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, keep)
    for layer in held.cache.cross_attention_cache.layers:
        layer.keys, layer.values = crop(layer.keys, 3), crop(layer.values, 3)


def cross_attention_instead(good: Kind, held: Held, keep: int) -> None:
    for layer in held.cache.cross_attention_cache.layers:
        crop_layer(layer, layer.keys.shape[-2], min(keep, 3))


def first_layer_only(good: Kind, held: Held, keep: int) -> None:
    crop_layer(own_layers(held.cache)[0], held.held, keep)


def keys_only(good: Kind, held: Held, keep: int) -> None:
    for layer in own_layers(held.cache):
        layer.keys = crop(layer.keys, keep)
        layer.values = torch.cat([layer.values[..., : keep - 1, :], layer.values[..., -1:, :]], dim=-2)


def restored_and_not_fed_again(good: Kind, held: Held, keep: int) -> None:
    held.cache = copy.deepcopy(held.remembered)


def emptied(good: Kind, held: Held, keep: int) -> None:
    held.cache.reset()


def unchanged(good: Kind, held: Held, keep: int) -> None:
    good.prune(held, keep)


class Planted(NamedTuple):
    """A mistake, where it is planted, and the accepted lengths of 4 drafts at which it must be found."""

    name: str
    kind: str
    models: tuple[str, ...]
    prune: Callable[[Kind, Held, int], None]
    found_at: tuple[int, ...] = (0, 1, 2, 3)
    remember: Callable[[Any], Any] | None = None


EVERY = (0, 1, 2, 3, 4)
SLIDING, OF_ENCODER_DECODERS = "DynamicCache(config) recording, reference", "EncoderDecoderCache dynamic, reference"
SNAPSHOT = "DynamicCache(config), snapshot"
MISTAKES = [
    Planted("one entry too many", DYNAMIC, FULL, keep_one_more),
    Planted("one entry too many, static", STATIC, FULL, keep_one_more),
    Planted("one entry too many, sliding", SLIDING, WINDOWS, keep_one_more),
    Planted("one entry too many, encoder-decoder", OF_ENCODER_DECODERS, ("t5", "bart"), keep_one_more),
    Planted("one token too many, recurrent", SNAPSHOT, RECURRENT, keep_one_more),
    Planted("one entry too few", DYNAMIC, FULL, keep_one_less, EVERY),
    Planted("one entry too few, static", STATIC, FULL, keep_one_less, EVERY),
    Planted("one entry too few, sliding", SLIDING, WINDOWS, keep_one_less, EVERY),
    Planted("one entry too few, encoder-decoder", OF_ENCODER_DECODERS, ("t5", "bart"), keep_one_less, EVERY),
    Planted("one token too few, recurrent", SNAPSHOT, RECURRENT, keep_one_less, EVERY),
    Planted("crop by -0", DYNAMIC, FULL, negative_zero, (4,)),
    Planted("rejected drafts stay", DYNAMIC, FULL, nothing),
    Planted("rejected drafts stay, static", STATIC, FULL, nothing),
    Planted("stale positions, sliding", SLIDING, WINDOWS, stale_positions),
    Planted("cross-attention pruned too", OF_ENCODER_DECODERS, ("t5", "bart"), cross_attention_too, EVERY),
    Planted("cross-attention pruned instead", OF_ENCODER_DECODERS, ("t5", "bart"), cross_attention_instead, EVERY),
    Planted("first layer only", DYNAMIC, FULL, first_layer_only),
    Planted("keys only", DYNAMIC, FULL, keys_only),
    Planted("emptied instead of rolled back", STATIC, FULL, emptied, EVERY),
    Planted("snapshot that shares its tensors", SNAPSHOT, RECURRENT, unchanged, remember=copy.copy),
    Planted("snapshot not fed again", SNAPSHOT, RECURRENT, restored_and_not_fed_again, EVERY),
]


@pytest.mark.parametrize(
    ("mistake", "architecture"),
    [
        pytest.param(mistake, architecture, id=f"{mistake.name}, {architecture}")
        for mistake in MISTAKES
        for architecture in mistake.models
    ],
)
def test_planted_mistake_is_found_and_its_control_holds(
    mistake: Planted, architecture: str, device: torch.device
) -> None:
    model, good = model_of(architecture, device), kind(mistake.kind)
    bad = planted(good, mistake.prune, **({"remember": mistake.remember} if mistake.remember else {}))
    of_good = {accepted: outcome for _, accepted, outcome in rounds(model, good, "target", range(4, 5))}
    of_bad = {accepted: outcome for _, accepted, outcome in rounds(model, bad, "target", range(4, 5))}
    assert {outcome.verdict for outcome in of_good.values()} == {"equal"}
    found = {
        accepted
        for accepted, outcome in of_bad.items()
        if outcome.verdict in {"other positions", "fails"} or outcome.largest > VISIBLE
    }
    assert found == set(mistake.found_at), of_bad


@pytest.mark.parametrize("architecture", FULL)
def test_planted_positions_counted_before_the_crop_are_found(architecture: str, device: torch.device) -> None:
    model, of = model_of(architecture, device), kind(DYNAMIC)
    tokens = (*KNOWN, DRAFTS[0], EMITTED)
    expected = fresh(model, of, (tokens,))
    for position, is_right in ((len(tokens) - 1, True), (len(KNOWN) + 4, False)):
        held = before_pruning(model, of, "target", gamma=4)
        held.prune(len(tokens) - 1)
        logits = held.feed((tokens[-1:],), position_ids=torch.tensor([[position]], device=device))
        of_logits = relative_difference(logits[:, -1], expected.logits[:, -1])
        largest = max(of_logits, difference(held.cache, expected))
        assert largest < bound(architecture) if is_right else largest > VISIBLE
