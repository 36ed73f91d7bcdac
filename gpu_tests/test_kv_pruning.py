"""Key-value caches of real models after a speculative round: what is kept must be what a fresh prefill computes.

Everything is float64. Both sides compute the same sums of at most 32 products, grouped differently, through two layers:
a few dozen roundings of 1.1e-16, amplified by weights of size about 1. ``BOUND`` leaves two orders of magnitude. (The
Llama norm asks for float32 and is given float64: of two inputs that agree to 1e-15 one may round up.) The planted
mistakes at the end show that the comparison sees real errors: each is off by more than ``VISIBLE``, nine orders of
magnitude above.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from transformers import DynamicCache

from reference import crop, keep_lengths, tokens_to_feed
from specverify.engines.huggingface.tiny_models import SAMPLED_ARCHITECTURES, build_model
from specverify.engines.huggingface.watch import in_float64
from test_support.gpu.cache_comparison import VISIBLE
from test_support.gpu.cache_rounds import DRAFTS, EMITTED, KNOWN
from test_support.gpu.tiny_models import VOCABULARY

BOUND = 1e-12
ROUNDS = [(gamma, accepted) for gamma in range(len(DRAFTS) + 1) for accepted in range(gamma + 1)]


class Fed(NamedTuple):
    """A cache after a forward pass, and the logits of the next token ``[vocabulary]``."""

    cache: Any
    logits: torch.Tensor


@pytest.fixture(params=SAMPLED_ARCHITECTURES, scope="module")
def model(request: pytest.FixtureRequest, device: torch.device) -> Any:
    built = build_model(request.param, VOCABULARY, seed=0).to(device=device, dtype=torch.float64)
    built.forward = in_float64(built.forward)
    return built


def feed(model: Any, cache: Any, tokens: tuple[int, ...]) -> Fed:
    ids = torch.tensor([tokens], device=model.device)
    with torch.no_grad():
        answer = model(input_ids=ids, past_key_values=cache, use_cache=True)
    return Fed(answer.past_key_values, answer.logits[0, -1])


def prefill(model: Any, tokens: tuple[int, ...]) -> Fed:
    return feed(model, DynamicCache(), tokens)


def crop_by_library(cache: Any, keep: int) -> None:
    """Crop a cache to ``keep`` entries by the library's own method.

    The library takes the negative number of entries to remove; for none it must not be called with -0.
    """
    surplus = cache.get_seq_length() - keep
    assert surplus >= 0
    if surplus:
        cache.crop(-surplus)


def crop_by_reference(cache: Any, keep: int) -> None:
    for layer in cache.layers:
        layer.keys, layer.values = crop(layer.keys, keep), crop(layer.values, keep)


def relative_difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest difference relative to the largest expected entry; infinite for different shapes."""
    if found.shape != expected.shape:
        return float("inf")
    return float((found - expected).abs().max() / expected.abs().max())


def cache_difference(model: Any, cache: Any, kept: tuple[int, ...]) -> float:
    """Return the largest relative difference of any layer's keys or values from a fresh prefill of ``kept``."""
    fresh = prefill(model, kept).cache
    pairs = zip(cache.layers, fresh.layers, strict=True)
    return max(
        relative_difference(*tensors)
        for layer, expected in pairs
        for tensors in ((layer.keys, expected.keys), (layer.values, expected.values))
    )


def logits_difference(model: Any, logits: torch.Tensor, tokens: tuple[int, ...]) -> float:
    return relative_difference(logits, prefill(model, tokens).logits)


def verified(model: Any, gamma: int) -> Any:
    """Return the target's cache after the verifying pass: it contains all known tokens and all drafts."""
    cache = prefill(model, KNOWN[:-1]).cache
    return feed(model, cache, tokens_to_feed(KNOWN, len(KNOWN) - 1) + DRAFTS[:gamma]).cache


def drafted(model: Any, gamma: int) -> Any:
    """Return the drafter's cache after drafting: it lacks the last draft, and is not extended for gamma = 0."""
    cache = prefill(model, KNOWN[:-1]).cache
    for i in range(gamma):
        held = len(KNOWN) - 1 + i
        cache = feed(model, cache, tokens_to_feed(KNOWN + DRAFTS[:i], held)).cache
    return cache


def after(accepted: int) -> tuple[int, ...]:
    return (*KNOWN, *DRAFTS[:accepted], EMITTED)


def check_round(model: Any, cache: Any, keep: int, accepted: int) -> None:
    """Check that the kept entries equal those of a fresh prefill, also after the rest is fed, and so do the logits."""
    tokens = after(accepted)
    assert cache_difference(model, cache, tokens[:keep]) < BOUND
    following = feed(model, cache, tokens_to_feed(tokens, keep))
    assert logits_difference(model, following.logits, tokens) < BOUND
    assert cache_difference(model, following.cache, tokens) < BOUND


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("cut", [crop_by_library, crop_by_reference])
@pytest.mark.parametrize(("gamma", "accepted"), ROUNDS)
def test_target_cache_equals_a_fresh_prefill(model: Any, gamma: int, accepted: int, cut: Any) -> None:
    cache = verified(model, gamma)
    keep = keep_lengths(len(KNOWN), gamma, accepted).target
    assert cache.get_seq_length() == len(KNOWN) + gamma
    cut(cache, keep)
    check_round(model, cache, keep, accepted)


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("cut", [crop_by_library, crop_by_reference])
@pytest.mark.parametrize(("gamma", "accepted"), ROUNDS)
def test_draft_cache_equals_a_fresh_prefill(model: Any, gamma: int, accepted: int, cut: Any) -> None:
    cache = drafted(model, gamma)
    keep = keep_lengths(len(KNOWN), gamma, accepted).draft
    assert cache.get_seq_length() == len(KNOWN) + gamma - 1
    cut(cache, keep)
    assert len(tokens_to_feed(after(accepted), keep)) == (2 if accepted == gamma else 1)
    check_round(model, cache, keep, accepted)


def test_planted_keeping_one_entry_too_many_is_found(model: Any) -> None:
    cache = verified(model, gamma=4)
    keep = keep_lengths(len(KNOWN), gamma=4, accepted=1).target
    crop_by_library(cache, keep + 1)
    assert cache_difference(model, cache, after(1)[:keep]) > VISIBLE
    assert logits_difference(model, feed(model, cache, (EMITTED,)).logits, after(1)) > VISIBLE


def test_planted_entry_of_a_rejected_draft_is_found(model: Any) -> None:
    """As many entries as tokens, and the last of them belongs to the rejected draft instead of the emitted token."""
    cache = verified(model, gamma=4)
    crop_by_library(cache, keep_lengths(len(KNOWN), gamma=4, accepted=1).target + 1)
    assert cache.get_seq_length() == len(after(1))
    assert VISIBLE < cache_difference(model, cache, after(1)) < float("inf")


def test_planted_keeping_one_entry_too_few_and_feeding_one_token_is_found(model: Any) -> None:
    cache = verified(model, gamma=4)
    keep = keep_lengths(len(KNOWN), gamma=4, accepted=2).target - 1
    crop_by_library(cache, keep)
    following = feed(model, cache, (EMITTED,))
    assert logits_difference(model, following.logits, after(2)) > VISIBLE
    assert cache_difference(model, following.cache, after(2)) > VISIBLE


def test_planted_crop_by_a_negative_zero_is_found(model: Any) -> None:
    """After full acceptance nothing is rejected, and ``[: -0]`` empties the cache."""
    cache = verified(model, gamma=3)
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys[..., :-0, :], layer.values[..., :-0, :]
    assert cache_difference(model, cache, after(3)[:-1]) > VISIBLE
    assert logits_difference(model, feed(model, cache, (EMITTED,)).logits, after(3)) > VISIBLE


def test_planted_feeding_the_whole_sequence_on_top_of_a_cache_is_found(model: Any) -> None:
    cache = verified(model, gamma=4)
    crop_by_library(cache, keep_lengths(len(KNOWN), gamma=4, accepted=2).target)
    following = feed(model, cache, after(2))
    assert logits_difference(model, following.logits, after(2)) > VISIBLE
    assert cache_difference(model, following.cache, after(2)) > VISIBLE


def test_planted_feeding_the_drafter_one_token_after_full_acceptance_is_found(model: Any) -> None:
    cache = drafted(model, gamma=4)
    following = feed(model, cache, (EMITTED,))
    assert logits_difference(model, following.logits, after(4)) > VISIBLE
    assert cache_difference(model, following.cache, after(4)) > VISIBLE
