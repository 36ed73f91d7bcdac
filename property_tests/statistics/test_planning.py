"""What the planned statistics promise: the level, the power, the blind spot, the two stages and the certificate.

Observed rates are compared with promised ones by exact binomial tails at 1e-6: a rate fails only if the promise makes
it that improbable. All seeds are fixed.
"""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2, ncx2

from specverify.statistics import (
    detectable_total_variation,
    detectable_tv,
    goodness_of_fit,
    noncentrality_needed,
    perturbed,
    samples_for,
    samples_needed,
)
from test_support.statistics.statistical import (
    GEOMETRIC,
    PEAKED,
    UNIFORM,
    WIDE,
    at_least,
    at_most,
    distance,
    draws,
    exhaustive,
    probabilities,
)

# The level


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize(
    ("law", "samples", "pooled"),
    [(GEOMETRIC, 2000, 24), (UNIFORM, 200, 0), (PEAKED, 500, 0), (WIDE, 2000, 0)],
    ids=["geometric", "uniform", "peaked", "wide"],
)
def test_a_correct_sampler_is_rejected_as_often_as_declared(law, samples, pooled):
    runs = 20_000
    fits = [goodness_of_fit(counts, law) for counts in draws(law, samples, runs, seed=1)]
    assert {fit.pooled_cells for fit in fits} == {pooled}
    for level, factor in ((1e-2, 1.5), (1e-3, 2.5)):
        rejected = sum(fit.p_value <= level for fit in fits)
        assert at_most(rejected, runs, factor * level)
        assert at_least(rejected, runs, level / 2)


def test_the_p_value_is_that_of_pearson():
    fit = goodness_of_fit({"x": 60, "y": 40}, {"x": 0.5, "y": 0.5})
    assert fit.statistic == pytest.approx(4.0, rel=1e-12)
    assert fit.p_value == pytest.approx(0.04550026389635841, rel=1e-9)
    assert fit.tv_observed == pytest.approx(0.1, rel=1e-12)
    assert (fit.samples, fit.cells, fit.pooled_cells, fit.pooled_mass, fit.unsupported) == (100, 2, 0, 0.0, ())


# The power


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(
    ("law", "samples"),
    [(UNIFORM, 1000), (UNIFORM, 200), (PEAKED, 2000), (GEOMETRIC, 4000), (WIDE, 4000), (WIDE, 50_000)],
    ids=["uniform", "uniform-few", "peaked", "geometric", "wide", "wide-many"],
)
@pytest.mark.parametrize("shape", ["proportional", "concentrated", "leaking"])
def test_a_law_at_the_detectable_distance_is_missed_at_most_as_often_as_planned(law, samples, shape):
    level, miss, runs = 1e-3, 0.05, 1500
    detectable = detectable_total_variation(law, samples, level, miss)
    biased = {"proportional": perturbed, "concentrated": concentrated, "leaking": leaking}[shape](law, detectable)
    assert distance(biased, law) == pytest.approx(detectable, rel=1e-9)
    fits = [goodness_of_fit(counts, law) for counts in draws(biased, samples, runs, seed=2)]
    assert at_most(sum(fit.p_value > level for fit in fits), runs, miss)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("law", "samples"), [(UNIFORM, 1000), (WIDE, 20_000)], ids=["uniform", "wide"])
def test_the_plan_is_not_wasteful_for_the_worst_shape(law, samples):
    level, miss, runs = 1e-3, 0.05, 5000
    biased = perturbed(law, detectable_total_variation(law, samples, level, miss))
    fits = [goodness_of_fit(counts, law) for counts in draws(biased, samples, runs, seed=3)]
    assert at_least(sum(fit.p_value > level for fit in fits), runs, 0.8 * miss)


def concentrated(law, tv):
    """Move ``tv`` from the likeliest outcomes, taken in order, to the least likely one."""
    *others, least = sorted(law, key=law.__getitem__, reverse=True)
    moved, left = dict(law), tv
    for outcome in others:
        taken = min(left, moved[outcome])
        moved[outcome], left = moved[outcome] - taken, left - taken
    moved[least] += tv
    return moved


def leaking(law, tv):
    """Move ``tv`` as ``perturbed`` does, but send 5e-5 of it (2.5 samples in 50 000) to an outcome outside the law."""
    moved = perturbed(law, tv)
    gained = {outcome: moved[outcome] - law[outcome] for outcome in law if moved[outcome] > law[outcome]}
    return moved | {x: law[x] + gain * (1 - 5e-5 / tv) for x, gain in gained.items()} | {"outside": 5e-5}


@exhaustive
@given(st.integers(1, 10**9), st.integers(2, 10**5), probabilities, probabilities)
def test_samples_needed_inverts_detectable_tv(samples, cells, false_alarm, miss):
    tv = detectable_tv(samples, cells, false_alarm, miss)
    assume(tv < 1)
    # One unit in the last place of the square root can cost one sample of 1e9, never two.
    assert abs(samples_needed(tv, cells, false_alarm, miss) - samples) <= 1


@exhaustive
@given(st.floats(1e-4, 0.999), st.integers(2, 10**5), probabilities, probabilities)
def test_detectable_tv_inverts_samples_needed(tv, cells, false_alarm, miss):
    samples = samples_needed(tv, cells, false_alarm, miss)
    rounding = 1 + 1e-12
    assert detectable_tv(samples, cells, false_alarm, miss) <= tv * rounding
    if samples > 1:
        assert detectable_tv(samples - 1, cells, false_alarm, miss) * rounding > tv


@exhaustive
@given(st.integers(2, 10**5), st.floats(1e-12, 0.4), st.floats(1e-12, 0.4))
def test_the_noncentrality_gives_exactly_the_planned_miss(cells, false_alarm, miss):
    critical = chi2.isf(false_alarm, cells - 1)
    noncentrality = noncentrality_needed(cells, false_alarm, miss)
    assert ncx2.cdf(critical, cells - 1, noncentrality) == pytest.approx(miss, rel=1e-6)


@exhaustive
@given(st.integers(10, 10**8), st.integers(2, 10**4), st.floats(1e-9, 0.2), st.floats(1e-9, 0.2))
def test_more_samples_fewer_cells_and_more_tolerance_detect_less_deviation(samples, cells, false_alarm, miss):
    tv = detectable_tv(samples, cells, false_alarm, miss)
    assume(tv < 1)
    assert detectable_tv(2 * samples, cells, false_alarm, miss) < tv
    assert detectable_tv(samples, cells, 2 * false_alarm, miss) < tv
    assert detectable_tv(samples, cells, false_alarm, 2 * miss) < tv
    assert detectable_tv(samples, 2 * cells, false_alarm, miss) > tv


def test_one_cell_detects_nothing():
    assert detectable_tv(10**9, 1, 1e-3, 1e-3) == 1.0


@pytest.mark.parametrize("samples", [1, 3, 100, 10_000])
def test_a_law_with_one_outcome_is_planned_exactly(samples):
    detectable = detectable_total_variation({"x": 1.0}, samples, 1e-3, 0.05)
    assert (1 - detectable) ** samples == pytest.approx(0.05, rel=1e-9)
    assert samples_for({"x": 1.0}, detectable * (1 + 1e-9), 1e-3, 0.05) == samples


@pytest.mark.parametrize("law", [UNIFORM, PEAKED, GEOMETRIC, WIDE], ids=["uniform", "peaked", "geometric", "wide"])
@pytest.mark.parametrize("tv", [0.5, 0.1, 0.01])
def test_samples_for_is_enough_and_one_fewer_is_not(law, tv):
    samples = samples_for(law, tv, 1e-3, 1e-3)
    assert detectable_total_variation(law, samples, 1e-3, 1e-3) <= tv
    assert detectable_total_variation(law, samples - 1, 1e-3, 1e-3) > tv
