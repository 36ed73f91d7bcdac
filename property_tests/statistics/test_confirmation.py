"""What the two-stage test promises: who is refuted, who fits, and when it must not say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import binom

from specverify.statistics import FitVerdict, calibrated_level, confirmed_fit, goodness_of_fit, perturbed, stage_level
from specverify.statistics.confirmation import multinomial_counts, stage_seeds

IMPROBABLE = 1e-6

LAW = {(0,): 0.4, (1,): 0.3, (2, 0): 0.2, (2, 1): 0.1}
PLAN = {"samples": 2000, "false_alarm": 1e-6, "miss": 1e-3}


def sampler_of(law):
    """Return a sampler of independent draws from ``law``."""
    masses = np.array(list(law.values()))

    def sample(samples, seed):
        counts = np.random.default_rng(seed).multinomial(samples, masses / masses.sum())
        return dict(zip(law, counts.tolist(), strict=True))

    return sample


def test_a_correct_sampler_fits():
    fit = confirmed_fit(sampler_of(LAW), LAW, **PLAN, seed=1)
    assert (fit.verdict, fit.second, fit.control) == (FitVerdict.FITS, None, True)
    assert (fit.first.samples, fit.false_alarm, fit.miss) == (2000, 1e-6, 1e-3)
    assert 0 < fit.detectable_tv < 0.2
    assert fit.level == stage_level(1e-6) == calibrated_level(1e-3)


def test_a_biased_sampler_is_refuted_on_fresh_samples():
    asked = []
    biased = sampler_of(perturbed(LAW, 0.2))

    def sampler(samples, seed):
        asked.append((samples, seed))
        return biased(samples, seed)

    fit = confirmed_fit(sampler, LAW, **PLAN, seed=2)
    assert (fit.verdict, fit.control) == (FitVerdict.REFUTED, True)
    assert fit.second is not None
    assert (fit.second.samples, fit.second.cells) == (8000, fit.first.cells)
    assert asked == list(zip((2000, 8000), stage_seeds(2)[:2], strict=True))


def test_one_unlucky_first_stage_is_not_an_accusation():
    def sampler(samples, seed):
        return sampler_of(perturbed(LAW, 0.2) if samples == 2000 else LAW)(samples, seed)

    fit = confirmed_fit(sampler, LAW, **PLAN, seed=3)
    assert fit.verdict == FitVerdict.FITS
    assert fit.first.p_value <= fit.level
    assert fit.second is not None
    assert fit.second.p_value > fit.level


@pytest.mark.parametrize("law", [LAW, {"x": 1.0}], ids=["four-outcomes", "one-outcome"])
def test_an_unsupported_outcome_is_refuted_without_a_second_stage(law):
    def sampler(samples, seed):
        return {next(iter(law)): samples - 1, "impossible": 1}

    fit = confirmed_fit(sampler, law, **PLAN, seed=4)
    assert (fit.verdict, fit.second, fit.first.unsupported) == (FitVerdict.REFUTED, None, ("impossible",))


def test_an_unsupported_outcome_in_the_second_stage_alone_refutes():
    def sampler(samples, seed):
        if samples == 2000:
            return sampler_of(perturbed(LAW, 0.2))(samples, seed)
        return sampler_of(LAW)(samples - 1, seed) | {"impossible": 1}

    fit = confirmed_fit(sampler, LAW, **PLAN, seed=5)
    assert fit.verdict == FitVerdict.REFUTED
    assert fit.second is not None
    assert fit.second.unsupported == ("impossible",)


def test_a_law_with_one_outcome_can_fit():
    fit = confirmed_fit(lambda samples, seed: {"x": samples}, {"x": 1.0}, **PLAN, seed=6)
    assert (fit.verdict, fit.control, fit.first.cells) == (FitVerdict.FITS, True, 1)
    assert (1 - fit.detectable_tv) ** 2000 == pytest.approx(1e-3 / 2, rel=1e-9)


@pytest.mark.parametrize("samples", [1, 10, 20, 26])
def test_too_few_samples_to_promise_anything_is_unknown(samples):
    # 26 samples reject the control, half of the mass away, but there are laws further away that they miss.
    few = PLAN | {"samples": samples}
    for seed in range(20):
        fit = confirmed_fit(sampler_of(LAW), LAW, **few, seed=seed)
        assert fit.verdict == FitVerdict.UNKNOWN
        assert fit.detectable_tv == 1.0


def test_a_control_that_is_not_rejected_is_unknown():
    # 50 samples detect only 0.97 at this level: the largest perturbation, half of the mass, is rejected now and then.
    plan = PLAN | {"samples": 50, "false_alarm": 1e-12}
    fits = [confirmed_fit(sampler_of(LAW), LAW, **plan, seed=seed) for seed in range(60)]
    assert all(fit.detectable_tv < 1 for fit in fits)
    assert {(fit.verdict, fit.control) for fit in fits} == {(FitVerdict.FITS, True), (FitVerdict.UNKNOWN, False)}


def test_refuted_stands_even_if_the_control_fails():
    # Every outcome is pooled, so the statistic cannot reject, but the impossible still refutes.
    law = dict.fromkeys(range(1000), 1 / 1000)
    fit = confirmed_fit(lambda samples, seed: {0: samples - 1, -1: 1}, law, **PLAN, seed=7)
    assert (fit.verdict, fit.control) == (FitVerdict.REFUTED, False)


def test_both_stages_judge_the_same_partition():
    law = {token: 0.5 ** (token + 1) for token in range(30)} | {30: 0.5**30}
    for factor in (1, 3, 4, 7):
        fit = confirmed_fit(sampler_of(perturbed(law, 0.3)), law, **PLAN, seed=8, confirmation_factor=factor)
        assert fit.second is not None
        assert fit.second.pooled_cells == fit.first.pooled_cells > 0
        assert fit.second.samples == factor * 2000


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(
    "law", [LAW, {token: 0.5 ** (token + 1) for token in range(12)} | {12: 0.5**12}], ids=["four-outcomes", "geometric"]
)
def test_the_two_stages_accuse_a_correct_sampler_at_most_as_often_as_promised(law):
    runs, false_alarm = 5000, 1e-2
    fits = [
        confirmed_fit(sampler_of(law), law, samples=400, false_alarm=false_alarm, miss=0.05, seed=seed)
        for seed in range(runs)
    ]
    suspicious = sum(fit.second is not None for fit in fits)
    assert binom.sf(suspicious - 1, runs, false_alarm**0.5) > IMPROBABLE
    assert binom.cdf(suspicious, runs, false_alarm**0.5 / 2) > IMPROBABLE
    assert binom.sf(sum(fit.verdict == FitVerdict.REFUTED for fit in fits) - 1, runs, false_alarm) > IMPROBABLE
    assert binom.sf(sum(not fit.control for fit in fits) - 1, runs, 0.05 / 2) > IMPROBABLE


def test_a_law_at_the_detectable_distance_is_refuted_as_often_as_promised():
    runs, plan = 1500, {"samples": 2000, "false_alarm": 1e-4, "miss": 0.1}
    detectable = confirmed_fit(sampler_of(LAW), LAW, **plan, seed=0).detectable_tv
    sampler = sampler_of(perturbed(LAW, detectable))
    missed = sum(
        confirmed_fit(sampler, LAW, **plan, seed=seed).verdict != FitVerdict.REFUTED for seed in range(1, runs + 1)
    )
    assert binom.sf(missed - 1, runs, 0.1) > IMPROBABLE
    assert binom.cdf(missed, runs, 0.1 / 4) > IMPROBABLE


def test_the_control_draws_from_the_law_it_is_given():
    counts = multinomial_counts(LAW, 100_000, seed=1)
    assert counts.keys() == LAW.keys()
    assert goodness_of_fit(counts, LAW).p_value > IMPROBABLE


def test_the_seeds_of_the_stages_differ_and_are_reproducible():
    seeds = [word for seed in range(1000) for word in stage_seeds(seed)]
    assert len(set(seeds)) == 3000
    assert all(0 <= word < 2**63 for word in seeds)
    assert stage_seeds(17) == stage_seeds(17)
    plan = PLAN | {"samples": 300}
    assert confirmed_fit(sampler_of(LAW), LAW, **plan, seed=9) == confirmed_fit(sampler_of(LAW), LAW, **plan, seed=9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 0}, "samples is 0, expected a whole number of at least 1"),
        ({"false_alarm": 0.0}, "false_alarm is 0.0, expected a probability strictly between 0 and 1"),
        ({"miss": 1.0}, "miss is 1.0, expected a probability strictly between 0 and 1"),
        ({"confirmation_factor": 0}, "confirmation_factor is 0, expected a whole number of at least 1"),
        ({"minimum_expected": -1.0}, "minimum_expected is -1.0, expected a positive number of samples"),
        ({"seed": -1}, "seed is -1, expected a whole number of at least 0 and below 2**63"),
    ],
)
def test_an_illegal_plan_is_refused(changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        confirmed_fit(sampler_of(LAW), LAW, **PLAN | {"seed": 1} | changes)


def test_a_sampler_that_returns_another_number_of_samples_is_refused():
    message = f"the sampler returned 1999 samples for seed {stage_seeds(1)[0]}, expected 2000"
    with pytest.raises(ValueError, match=f"^{message}$"):
        confirmed_fit(lambda samples, seed: {(0,): samples - 1}, LAW, **PLAN, seed=1)
