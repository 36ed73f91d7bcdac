"""Intervals that are looked at after every batch: how often they miss, and how wide they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from specverify.statistics import Interval, rate_sequence, tv_certificate, tv_sequence
from specverify.statistics.confidence_sequences import TWO_SAMPLES, log_rate_evidence
from test_support.statistics.statistical import at_most

P = np.array([0.1, 0.2, 0.3, 0.4])
TRUE = np.array([0.16, 0.23, 0.26, 0.35])
TV = 0.09
RUNS, EVERY, LOOKS = 1500, 25, 80


def tv(first, second):
    return np.abs(first - second).sum(axis=-1) / 2


def totals(rng, law, runs=RUNS):
    return np.cumsum(rng.multinomial(EVERY, law, size=(LOOKS, runs)), axis=0)


def test_the_total_variation_is_below_its_bound_at_all_times_as_often_as_declared():
    """The misses of both sides, at an error of 0.2 so that there are some to count."""
    counts = totals(np.random.default_rng(1), TRUE)
    too_low, too_high = np.zeros(RUNS, bool), np.zeros(RUNS, bool)
    for look, total in enumerate(counts, start=1):
        n = look * EVERY
        seen = tv(total / n, P)
        bounds = tv_sequence(0.0, n, 4, 0.2, tight_at=1000)
        below = tv_sequence(1.0, n, 4, 0.2, tight_at=1000)
        too_low |= seen + bounds.upper < TV
        too_high |= seen - (1 - below.lower) > TV
    assert at_most(int(too_low.sum()), RUNS, 0.2)
    assert at_most(int(too_high.sum()), RUNS, 0.2)


def test_a_bound_of_one_look_is_missed_more_often_by_whoever_looks_at_all_times():
    """The negative control: the normal bound for a fixed number of samples, on the set that gains."""
    counts = totals(np.random.default_rng(2), TRUE)
    gains = TRUE > P
    n = EVERY * np.arange(1, LOOKS + 1)[:, None]
    seen = counts[..., gains].sum(axis=-1) / n - P[gains].sum()
    missed = (seen + norm.isf(0.2) * np.sqrt(TRUE[gains].sum() * TRUE[~gains].sum() / n) < TV).any(axis=0)
    assert not at_most(int(missed.sum()), RUNS, 0.2)


def test_two_samples_of_one_law_are_never_far_apart():
    rng = np.random.default_rng(3)
    first, second = totals(rng, TRUE), totals(rng, P)
    missed = np.zeros(RUNS, bool)
    for look, (a, b) in enumerate(zip(first, second, strict=True), start=1):
        n = look * EVERY
        bounds = tv_sequence(0.0, n, 4, 0.2, tight_at=1000, variance=TWO_SAMPLES)
        missed |= tv(a / n, b / n) + bounds.upper < TV
    assert at_most(int(missed.sum()), RUNS, 0.2)


def test_the_upper_bound_is_tighter_than_that_of_one_look_where_there_are_many_cells():
    """One fixed set against the mean over all cells: looking at all times costs less than the cells did."""
    assert tv_sequence(0.01, 100_000, 500, 1e-6, tight_at=100_000).upper < tv_certificate(0.01, 100_000, 500, 1e-6)


def test_it_shrinks_with_the_root_of_the_samples():
    widths = [tv_sequence(0.0, 4**k, 16, 1e-6, tight_at=4**8).upper for k in (6, 8, 10)]
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.2)
    assert widths[1] / widths[2] == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.93])
def test_the_rate_is_inside_its_interval_at_all_times_as_often_as_declared(rate):
    rng = np.random.default_rng(4)
    heads = np.cumsum(rng.binomial(10, rate, size=(60, 400)), axis=0)
    missed = 0
    for run in range(400):
        found = [log_rate_evidence(int(s), 10 * look, rate) for look, s in enumerate(heads[:, run], start=1)]
        missed += max(found) >= math.log(10)
    assert at_most(missed, 400, 0.1)


@pytest.mark.parametrize(("successes", "trials"), [(0, 50), (50, 50), (17, 40), (1, 1000), (70_000, 100_000)])
def test_the_ends_are_where_the_evidence_crosses(successes, trials):
    found = rate_sequence(successes, trials, 0.01)
    assert 0 <= found.lower <= successes / trials <= found.upper <= 1
    for end in found:
        if 0 < end < 1:
            assert log_rate_evidence(successes, trials, end) == pytest.approx(math.log(100), rel=1e-3)


def test_a_wrong_rate_is_left_out_and_the_interval_of_many_is_narrow():
    found = rate_sequence(70_000, 100_000, 1e-6)
    assert found.lower > 0.69
    assert found.upper < 0.71
    assert rate_sequence(0, 0, 0.01) == Interval(0.0, 1.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((3, 2, 0.1), "successes is 3, expected a whole number from 0 to 2"),
        ((-1, 2, 0.1), "successes is -1"),
        ((1, 2, 0.0), "error is 0.0, expected a probability strictly between 0 and 1"),
    ],
)
def test_counts_that_cannot_be_are_refused(given, said):
    with pytest.raises(ValueError, match=said):
        rate_sequence(*given)
