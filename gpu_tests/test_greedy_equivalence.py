"""Speculation at temperature 0 with real models: the output is the target's own greedy continuation, token by token.

The first half calls models without caches; there the expected output is a loop over forwards of the whole sequence that
uses nothing of ``reference``. The second half runs the same decoders on real key-value caches, alone and as left-padded
batches, and the library's own speculation. In float64 and float32 equality is demanded: the texts are clear of ties by
more than the rounding that is measured. What bfloat16 and float16 do is in ``test_low_precision``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from reference import Decoder, LanguageModel, Sampled, Task, Tokens, generate, warped
from reference.algorithms import speculative_sampling
from specverify.engines.huggingface.tiny_models import SAMPLED_ARCHITECTURES, build_model
from test_support.gpu import tiny_models
from test_support.gpu.cached_models import PLANTS, Plant, cut, whole_logits
from test_support.gpu.configurations import CONFIGURATIONS, DRAFTERS, WITH_DRAFTER, WITHOUT_DRAFTER, some_configurations
from test_support.gpu.texts import (
    CLEAR,
    Setting,
    Text,
    batched_settings,
    library_outputs,
    run_batched,
    run_setting,
    settings,
    skip_unless_padding_is_finite,
    texts_of,
)
from test_support.gpu.ties import Ledger, measure
from test_support.gpu.tiny_models import ABSOLUTE_OR_ROTARY, ANY_MASK, ATTENTIONS

VOCABULARY = 7
HORIZON = 9
SEEDS = (0, 1, 2)
GAMMAS = range(9)
PROMPT_LENGTHS = range(1, 7)
Logits = Callable[[Tokens], Any]


class Case(NamedTuple):
    """One prompt of one target, how it ends, and what the target alone answers."""

    seed: int
    prompt: Tokens
    eos: Tokens
    expected: Tokens


def next_logits(architecture: str, seed: int, device: torch.device) -> Logits:
    """Return a function from tokens to the next logits ``[vocabulary]`` on the device, computed by a float64 model."""
    model = build_model(architecture, VOCABULARY, seed).to(device=device, dtype=torch.float64)

    @cache
    def logits(tokens: Tokens) -> Any:
        with torch.no_grad():
            return model(torch.tensor([tokens], device=device)).logits[0, -1]

    return logits


def greedy(logits: Logits, prompt: Tokens, eos: Tokens) -> Tokens:
    new: Tokens = ()
    while len(new) < HORIZON and not (new and new[-1] in eos):
        new = (*new, int(logits(prompt + new).argmax()))
    return new


def as_numpy(logits: Logits) -> Logits:
    return lambda tokens: logits(tokens).cpu().numpy()


def as_tensor(logits: Logits) -> Logits:
    return logits


def one_hot_rows(logits: Logits) -> LanguageModel:
    return warped(logits, temperature=0)


@pytest.fixture(params=SAMPLED_ARCHITECTURES, scope="module")
def models(request: pytest.FixtureRequest, device: torch.device) -> dict[int, Logits]:
    """Target models by seed; the draft model of a target is the model of another seed."""
    return {seed: next_logits(request.param, seed, device) for seed in (*SEEDS, len(SEEDS))}


@pytest.fixture(scope="module")
def cases(models: dict[int, Logits]) -> list[Case]:
    """Cases for every seed and prompt length, without an end token and with the third emitted token as one."""
    rng = np.random.default_rng(0)
    found = []
    for seed, length in product(SEEDS, PROMPT_LENGTHS):
        prompt = tuple(rng.integers(VOCABULARY, size=length).tolist())
        whole = greedy(models[seed], prompt, eos=())
        found += [Case(seed, prompt, eos, greedy(models[seed], prompt, eos)) for eos in ((), (whole[2],))]
    assert any(case.eos and len(case.expected) == 3 for case in found)
    return found


def check(case: Case, decoder: Decoder, gamma: int) -> None:
    emitted = generate(decoder, case.prompt, Sampled(0)).tokens
    assert emitted == case.expected, f"gamma {gamma}, {case}"


@pytest.mark.thorough(keep=40)
@pytest.mark.parametrize("rows", [as_numpy, as_tensor])
@pytest.mark.parametrize("algorithm", WITH_DRAFTER)
@pytest.mark.parametrize("drafter", DRAFTERS)
def test_drafting_by_a_model_changes_nothing(
    models: dict[int, Logits], cases: list[Case], drafter: str, algorithm: str, rows: Callable[[Logits], Logits]
) -> None:
    identical, pmfs = DRAFTERS[drafter]

    @cache
    def pmfs_of(seed: int) -> tuple[LanguageModel, LanguageModel, LanguageModel]:
        """The target's pmfs, the drafts' and the other model's, computed once for all cases and gammas."""
        target, other = rows(models[seed]), rows(models[seed + 1])
        return cache(one_hot_rows(target)), cache(pmfs(target if identical else other)), cache(warped(other))

    for case, gamma in product(cases, GAMMAS):
        task = Task(*pmfs_of(case.seed), case.eos, HORIZON)
        check(case, WITH_DRAFTER[algorithm](task, gamma), gamma)


@pytest.mark.parametrize("rows", [as_numpy, as_tensor])
@pytest.mark.parametrize("algorithm", WITHOUT_DRAFTER)
def test_drafting_from_the_text_changes_nothing(
    models: dict[int, Logits], cases: list[Case], algorithm: str, rows: Callable[[Logits], Logits]
) -> None:
    target = {seed: cache(one_hot_rows(rows(models[seed]))) for seed in SEEDS}
    for case, gamma in product(cases, GAMMAS):
        task = Task(target[case.seed], eos=case.eos, horizon=HORIZON)
        check(case, WITHOUT_DRAFTER[algorithm](task, gamma), gamma)


def test_an_identical_drafter_is_always_accepted_and_the_least_likely_never(
    models: dict[int, Logits], cases: list[Case]
) -> None:
    """An identical drafter is always accepted, and one that proposes the least likely token never.

    Otherwise the tests above might compare decoders that never speculate.
    """
    case = next(case for case in cases if not case.eos)
    target = models[case.seed]
    rates = []
    for drafter in ("identical", "least likely"):
        task = Task(one_hot_rows(target), DRAFTERS[drafter].pmfs(target), horizon=HORIZON)
        rates.append(generate(speculative_sampling.build(task, 3), case.prompt, Sampled(0)).statistics.acceptance_rate)
    assert rates == [1, 0]


# Real key-value caches

CACHED = pytest.mark.parametrize("architecture", tiny_models.ARCHITECTURES)
ATTENDING = pytest.mark.parametrize("attention", ATTENTIONS)


@pytest.fixture
def texts(architecture: str, attention: str, exact_dtype: torch.dtype, device: torch.device) -> list[tuple[Text, ...]]:
    """Texts of two targets."""
    return [texts_of(architecture, exact_dtype, attention, device, seed) for seed in (0, 1)]


@pytest.mark.thorough(keep=20)
@ATTENDING
@CACHED
def test_texts_are_clear_of_ties(texts: Any, architecture: str, attention: str, exact_dtype: torch.dtype) -> None:
    """The compared texts are farther from ties than the rounding error, so equal tokens may be demanded.

    The expected outputs also equal those of forward passes without a cache.
    """
    for group in texts:
        rounding = measure(group[0].model, [(text.prompt, text.plain) for text in group[1::2]]).largest
        assert max(rounding.single, rounding.verify) < CLEAR, rounding
        for text in group:
            assert text.plain == tuple(whole_logits(text.model, text.prompt, text.plain).argmax(dim=-1).tolist())


@pytest.mark.thorough(keep=20)
@ATTENDING
@CACHED
def test_cached_decoding_is_the_targets_own(
    texts: Any, architecture: str, attention: str, exact_dtype: torch.dtype, record_greedy: Any
) -> None:
    ledger = Ledger(f"{architecture} {attention}")
    for setting in settings(some_configurations(architecture, attention, exact_dtype), [*texts[0], *texts[1]]):
        run = run_setting(setting)
        assert run.tokens == setting.expected, f"{setting.configuration}, {setting.text.prompt}, eos {setting.eos}"
        ledger.add(None, setting)
        ledger.drafted, ledger.accepted = ledger.drafted + run.drafted, ledger.accepted + run.accepted
    assert 0 < ledger.accepted < ledger.drafted  # some drafts are kept and some are not: caches are cropped
    ledger.close(record_greedy, exact_dtype)


@pytest.mark.thorough(keep=10)
@ATTENDING
@CACHED
def test_left_padded_batches_decode_as_each_row_alone(
    texts: Any, architecture: str, attention: str, exact_dtype: torch.dtype, record_greedy: Any
) -> None:
    group = texts[0]
    skip_unless_padding_is_finite(group)
    ledger = Ledger(f"{architecture} {attention} batched")
    for setting in batched_settings(architecture, exact_dtype, group):
        assert run_batched(setting, group) == [cut(text.plain, setting.eos) for text in group], setting
        ledger.add(None, setting)
    ledger.close(record_greedy, exact_dtype)


@pytest.mark.thorough(keep=10)
@ATTENDING
@CACHED
def test_speculation_of_the_library(
    texts: Any,
    architecture: str,
    attention: str,
    exact_dtype: torch.dtype,
    device: torch.device,
    record_greedy: Any,
) -> None:
    ledger = Ledger(f"{architecture} {attention} of the library")
    for index, text in enumerate(texts[0][::2]):
        eos, gamma = ((text.plain[2 * index],) if index % 2 else ()), 1 + (3 * index) % 8
        plain, speculative = library_outputs(text, eos, gamma, device)
        assert plain == cut(text.plain, eos)
        for way, tokens in speculative.items():
            assert tokens == plain, f"{way}, prompt {text.prompt}, eos {eos}, gamma {gamma}"
            ledger.add(None, way)
    ledger.close(record_greedy, exact_dtype)


@pytest.mark.thorough(keep=12)
@pytest.mark.parametrize("plant", PLANTS)
@CACHED
def test_planted_mistakes_of_a_cache_are_noticed(architecture: str, plant: str, device: torch.device) -> None:
    """A mistake planted in the cache changes the output, and the same run without it is right."""
    if plant == "position" and architecture not in ABSOLUTE_OR_ROTARY:
        pytest.skip(f"{architecture} counts positions itself: there are no position ids to get wrong")
    wrong = first_wrong(architecture, PLANTS[plant], device)
    assert wrong is not None
    assert run_setting(wrong).tokens == wrong.expected


def first_wrong(architecture: str, plant: Plant, device: torch.device) -> Setting | None:
    """Return the first run whose output the planted mistake changes; None if it changes none."""
    for seed in (0, 1, 2):
        texts = texts_of(architecture, torch.float64, "eager", device, seed, wide=True)
        for setting in settings(CONFIGURATIONS[::4], texts):
            if run_setting(setting, plant).tokens != setting.expected:
                return setting
    return None


@pytest.mark.parametrize("architecture", ANY_MASK)
def test_planted_positions_of_a_batch_are_noticed(architecture: str, device: torch.device) -> None:
    texts = texts_of(architecture, torch.float32, "eager", device, 0)
    for setting in list(batched_settings(architecture, torch.float32, texts))[1::3]:
        expected = [cut(text.plain, setting.eos) for text in texts]
        assert run_batched(setting, texts) == expected
        assert run_batched(setting, texts, shift=1) != expected
