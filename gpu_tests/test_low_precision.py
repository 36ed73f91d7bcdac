"""Greedy speculation in bfloat16 and float16: every divergence from plain decoding is a near-tie, or a defect.

What counts as a near-tie is decided in ``ties``, by float64 margins and measured rounding. The models are wide enough
for kernels to group their sums by the number of rows they are given. Planted mistakes in bfloat16 end the file: a
position, a row or an entry off by one must not pass for rounding.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch

from test_support.gpu.batched_speculation import forced_logits
from test_support.gpu.batches import tell
from test_support.gpu.cached_models import NO_PLANT, PLANTS, Plant, cut, greedy, whole_logits
from test_support.gpu.configurations import CONFIGURATIONS, some_configurations
from test_support.gpu.texts import (
    HORIZON,
    Setting,
    Text,
    batched_settings,
    library_outputs,
    run_batched,
    run_setting,
    settings,
    texts_of,
)
from test_support.gpu.ties import Divergence, Ledger, Measured, Rounding, classify, measure
from test_support.gpu.tiny_models import ABSOLUTE_OR_ROTARY, ARCHITECTURES, ATTENTIONS, WIDE_VOCABULARY, in_float64

SEEDS = range(4)
ENOUGH = 2
"""Runs with a planted mistake that are looked for on each architecture."""
ATTENDING = pytest.mark.parametrize("attention", ATTENTIONS)
CACHED = pytest.mark.parametrize("architecture", ARCHITECTURES)


def seed_of(attention: str, dtype: torch.dtype) -> int:
    """Return the seed for an attention and dtype; together, the two attentions and two dtypes use all seeds."""
    return SEEDS[(2 * ATTENTIONS.index(attention) + (dtype == torch.float16)) % len(SEEDS)]


def wide_texts(
    architecture: str, dtype: torch.dtype, attention: str, device: torch.device, seed: int
) -> tuple[Text, ...]:
    return texts_of(architecture, dtype, attention, device, seed, wide=True)


@cache
def rounding_of(texts: tuple[Text, ...], *, batched: bool = False) -> Measured:
    return measure(texts[0].model, [(text.prompt, text.plain) for text in texts], batched=batched)


@pytest.mark.thorough(keep=48)
@ATTENDING
@CACHED
def test_cached_decoding_differs_by_near_ties_only(
    architecture: str, attention: str, low_dtype: torch.dtype, device: torch.device, record_greedy: Any
) -> None:
    texts = wide_texts(architecture, low_dtype, attention, device, seed_of(attention, low_dtype))
    rounding = rounding_of(texts)
    ledger = Ledger(f"{architecture} {attention}", rounding)
    for setting in settings(some_configurations(architecture, attention, low_dtype), texts):
        run, text = run_setting(setting), setting.text
        found = classify(text.model, text.prompt, setting.expected, run.tokens, rounding)
        ledger.add(found, (setting.configuration, text.prompt, setting.eos))
        ledger.drafted, ledger.accepted = ledger.drafted + run.drafted, ledger.accepted + run.accepted
    assert 0 < ledger.accepted < ledger.drafted
    ledger.close(record_greedy, low_dtype)


@pytest.mark.thorough(keep=20)
@ATTENDING
@CACHED
def test_left_padded_batches_differ_by_near_ties_only(
    architecture: str, attention: str, low_dtype: torch.dtype, device: torch.device, record_greedy: Any
) -> None:
    """Against each row alone: another batch is another kernel, with a rounding of its own."""
    texts = wide_texts(architecture, low_dtype, attention, device, seed_of(attention, low_dtype))
    plain_rows = forced_logits(texts[0].model, [text.prompt for text in texts], [text.plain for text in texts], 0)
    if not plain_rows.isfinite().all():
        pytest.skip("a padded batch is NaN here without speculation: this attention is, for a row that sees nothing")
    rounding = rounding_of(texts, batched=True)
    ledger = Ledger(f"{architecture} {attention} batched", rounding)
    for setting in batched_settings(architecture, low_dtype, texts):
        for text, tokens in zip(texts, run_batched(setting, texts), strict=True):
            plain = cut(text.plain, setting.eos)
            ledger.add(classify(text.model, text.prompt, plain, tokens, rounding), (setting, text.prompt))
    ledger.close(record_greedy, low_dtype)


@pytest.mark.thorough(keep=20)
@ATTENDING
@CACHED
def test_speculation_of_the_library_differs_by_near_ties_only(
    architecture: str, attention: str, low_dtype: torch.dtype, device: torch.device, record_greedy: Any
) -> None:
    texts = wide_texts(architecture, low_dtype, attention, device, seed_of(attention, low_dtype))
    rounding = rounding_of(texts)
    ledger = Ledger(f"{architecture} {attention} of the library", rounding)
    for index, text in enumerate(texts[::2]):
        eos, gamma = ((text.plain[2 * index],) if index % 2 else ()), 1 + (3 * index) % 8
        plain, speculative = library_outputs(text, eos, gamma, device)
        for way, tokens in speculative.items():
            ledger.add(classify(text.model, text.prompt, plain, tokens, rounding), (way, text.prompt, eos, gamma))
    ledger.close(record_greedy, low_dtype)


# Planted mistakes, in bfloat16


@pytest.mark.thorough(keep=24)
@pytest.mark.parametrize("plant", PLANTS)
@CACHED
def test_planted_off_by_one_is_no_near_tie(architecture: str, plant: str, device: torch.device) -> None:
    """And without the mistake the runs that are refuted are not."""
    if plant == "position" and architecture not in ABSOLUTE_OR_ROTARY:
        pytest.skip(f"{architecture} counts positions itself: there are no position ids to get wrong")
    found, runs, excused = [], 0, 0
    for setting, rounding in planted_settings(architecture, device):
        verdict = verdict_of(setting, rounding, PLANTS[plant])
        runs += 1
        if verdict is not None and verdict.near_tie:
            excused += 1
        elif verdict is not None:
            found.append((setting, rounding, verdict))
        if len(found) == ENOUGH:
            break
    tell(f"{architecture}, {plant} off by one: of {runs} runs {len(found)} are refuted, {excused} pass for near-ties")
    for setting, rounding, verdict in found:
        tell(f"  {verdict}")
        right = verdict_of(setting, rounding)
        assert right is None or right.near_tie
    assert found


def planted_settings(architecture: str, device: torch.device) -> Iterator[tuple[Setting, Measured]]:
    for seed in SEEDS:
        texts = wide_texts(architecture, torch.bfloat16, "eager", device, seed)
        rounding = rounding_of(texts)
        yield from ((setting, rounding) for setting in settings(CONFIGURATIONS[::4], texts))


def verdict_of(setting: Setting, rounding: Measured, plant: Plant = NO_PLANT) -> Divergence | None:
    text = setting.text
    return classify(text.model, text.prompt, setting.expected, run_setting(setting, plant).tokens, rounding)


# The classification itself


EDGE = Rounding(single=0.3, verify=0.4, between=0.1)


def test_what_passes_for_a_near_tie() -> None:
    at_the_edge = Divergence(5, 1, 2, plain_margin=0.3, speculative_margin=0.4, gap=0.1, rounding=EDGE)
    assert at_the_edge.near_tie
    for beyond in ({"plain_margin": 0.31}, {"speculative_margin": 0.41}, {"gap": 0.11}, {"gap": float("nan")}):
        assert not at_the_edge._replace(**beyond).near_tie


@pytest.mark.parametrize("architecture", ["llama", "t5"])
def test_margins_are_those_of_the_float64_copy(architecture: str, device: torch.device) -> None:
    """The second most likely token instead of the first; an output that ends early; one that goes on."""
    text = wide_texts(architecture, torch.bfloat16, "eager", device, 0)[2]
    rounding = Measured(Rounding(*[float("inf")] * 3), {})
    for position in (0, 3, HORIZON - 1):
        common = (*text.plain[:position], 0)
        largest = whole_logits(in_float64(text.model), text.prompt, common)[position].topk(2)
        first, second = largest.indices.tolist()
        plain = (*text.plain[:position], first, 1)
        found = classify(text.model, text.prompt, plain, (*text.plain[:position], second, 2), rounding)
        assert found is not None
        assert found[:4] == (position, first, second, 0.0)
        assert found.speculative_margin == float(largest.values[0] - largest.values[1])
    for ends in (text.plain[:4], (*text.plain, 0)):
        found = classify(text.model, text.prompt, text.plain, ends, Measured(EDGE, {}))
        assert found is not None
        assert not found.near_tie
    assert classify(text.model, text.prompt, text.plain, text.plain, Measured(EDGE, {})) is None


def test_a_tie_that_is_made_is_a_near_tie_and_a_worse_token_is_not(device: torch.device) -> None:
    """Two tokens with one row of the output matrix have one logit: to choose the other is no mistake."""
    text = wide_texts("llama", torch.bfloat16, "eager", device, 0)[3]
    model = copy.deepcopy(text.model)
    token, twin = text.plain[-1], (text.plain[-1] + 1) % WIDE_VOCABULARY
    with torch.no_grad():
        model.lm_head.weight[twin] = model.lm_head.weight[token]
    plain = greedy(model, text.prompt, HORIZON)
    rounding = measure(model, [(text.prompt, plain)])
    position = next(index for index, new in enumerate(plain) if new in {token, twin})
    other = twin if plain[position] == token else token
    tie = classify(model, text.prompt, plain, (*plain[:position], other), rounding)
    assert tie is not None
    assert tie.near_tie
    assert max(tie.plain_margin, tie.speculative_margin) <= max(tie.rounding.single, tie.rounding.verify)
    worst = int(whole_logits(in_float64(model), text.prompt, plain)[position].argmin())
    wrong = classify(model, text.prompt, plain, (*plain[:position], worst), rounding)
    assert wrong is not None
    assert not wrong.near_tie
