"""Evidence against a known law: what is promised however often one looks, and what it finds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from specverify.statistics import anytime_detectable_tv, goodness_of_fit, log_e_value, log_product, perturbed
from test_support.statistics.statistical import GEOMETRIC, PEAKED, UNIFORM, at_least, at_most

P = np.array([0.1, 0.2, 0.3, 0.4])
LAWS = {"uniform": UNIFORM, "peaked": PEAKED, "geometric": GEOMETRIC}
RUNS = 2000
EVERY = 25
LOOKS = 80


def looks(masses, seed, runs=RUNS, every=EVERY, number=LOOKS):
    """Return the counts of ``runs`` samplers after each of ``number`` batches, ``[number, runs, k]``."""
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.multinomial(every, masses, size=(number, runs)), axis=0)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_whoever_stops_at_the_worst_moment_is_accused_no_more_often_than_declared(law):
    masses = np.array(list(law.values()))
    highest = np.max([log_e_value(counts, masses) for counts in looks(masses, seed=1)], axis=0)
    for alarm in (0.2, 0.05, 0.01):
        assert at_most(int((highest >= -math.log(alarm)).sum()), RUNS, alarm)


def test_a_test_that_is_no_e_process_alarms_far_too_often_when_looked_at_often():
    counts = looks(P, seed=2)
    expected = EVERY * np.arange(1, LOOKS + 1)[:, None, None] * P
    statistic = ((counts - expected) ** 2 / expected).sum(axis=-1)
    alarms = int((statistic.max(axis=0) >= chi2.isf(0.05, 3)).sum())
    assert not at_most(alarms, RUNS, 0.05)
    assert alarms > 5 * 0.05 * RUNS


def test_the_mean_of_an_e_value_is_exactly_one():
    """Over all outcomes of five draws, weighted by their probabilities: no simulation."""
    total = 0.0
    for sample in itertools.product(range(3), repeat=5):
        masses = np.array([0.2, 0.3, 0.5])
        counts = np.bincount(sample, minlength=3)
        total += math.exp(log_e_value(counts, masses) + (counts * np.log(masses)).sum())
    assert total == pytest.approx(1, rel=1e-8)


def test_an_outcome_of_probability_zero_refutes_at_once():
    assert log_e_value([1, 0, 3], [0.5, 0.0, 0.5]) < 1
    assert log_e_value([1, 1, 0], [0.5, 0.0, 0.5]) == math.inf


def test_outcomes_that_were_not_seen_may_be_left_out():
    assert log_e_value([3, 0, 7, 0], P) == pytest.approx(log_e_value([3, 7], P[[0, 2]]), abs=1e-12)


def test_shards_multiply_and_stay_within_the_alarm():
    shards = [log_e_value(looks(P, seed, number=1, every=200)[0], P) for seed in (3, 4, 5)]
    together = np.sum(shards, axis=0)
    assert log_product([float(item[0]) for item in shards]) == pytest.approx(float(together[0]))
    assert at_most(int((together >= -math.log(0.05)).sum()), RUNS, 0.05)


@pytest.mark.parametrize("law", [UNIFORM, PEAKED], ids=["uniform", "peaked"])
@pytest.mark.parametrize("samples", [1000, 20_000])
def test_what_is_called_detectable_is_detected_as_often_as_promised(law, samples):
    alarm, miss = 1e-6, 0.1
    masses = np.array(list(law.values()))
    tv = anytime_detectable_tv(samples, len(masses), alarm, miss)
    moved = np.array(list(perturbed(law, tv).values()))
    counts = np.random.default_rng(6).multinomial(samples, moved, size=RUNS)
    refuted = int((log_e_value(counts, masses) >= -math.log(alarm)).sum())
    assert at_least(refuted, RUNS, 1 - miss - 0.03)


def test_a_fifth_of_what_is_detectable_is_not():
    tv = anytime_detectable_tv(5000, 8, 1e-6, 0.1)
    moved = np.array(list(perturbed(UNIFORM, tv / 5).values()))
    counts = np.random.default_rng(7).multinomial(5000, moved, size=RUNS)
    assert (log_e_value(counts, np.full(8, 1 / 8)) >= -math.log(1e-6)).mean() < 0.05


def test_it_costs_less_than_twice_the_samples_of_a_test_with_one_look():
    """At 16 cells, alarm 1e-6: the price of looking whenever one likes."""
    law = dict.fromkeys(range(16), 1 / 16)
    tv = anytime_detectable_tv(20_000, 16, 1e-6, 0.1)
    moved = perturbed(law, tv)
    rng = np.random.default_rng(8)
    rejected = 0
    for _ in range(200):
        counts = rng.multinomial(10_000, list(moved.values()))
        rejected += goodness_of_fit(dict(zip(law, counts.tolist(), strict=True)), law).p_value <= 1e-6
    assert rejected < 180


def test_a_stated_rounding_forgives_what_it_covers_and_no_more():
    rng = np.random.default_rng(9)
    rounded = P * np.array([1.02, 0.99, 1.02, 0.985])
    rounded[3] = 1 - rounded[:3].sum()
    counts = rng.multinomial(200_000, rounded, size=500)
    assert at_most(int((log_e_value(counts, P, rounding=0.02) >= math.log(20)).sum()), 500, 0.05)
    assert not at_most(int((log_e_value(counts, P) >= math.log(20)).sum()), 500, 0.05)
    wrong = rng.multinomial(20_000, [0.2, 0.2, 0.2, 0.4], size=500)
    assert (log_e_value(wrong, P, rounding=0.02) >= math.log(1e6)).all()


@pytest.mark.parametrize(
    ("counts", "masses", "said"),
    [
        ([1, 2], [0.5, 0.25, 0.25], "counts have shape (2,) and masses (3,), expected [..., k] and [k]"),
        ([1, -2], [0.5, 0.5], "counts or masses are negative or no numbers"),
        ([1, 2], [0.5, math.nan], "counts or masses are negative or no numbers"),
    ],
)
def test_what_is_no_count_or_no_law_is_refused(counts, masses, said):
    with pytest.raises(ValueError, match=said.replace("[", r"\[").replace("(", r"\(").replace(")", r"\)")):
        log_e_value(counts, masses)


def test_what_is_forgiven_is_not_called_detectable():
    plain = anytime_detectable_tv(20_000, 4, 1e-6, 0.1)
    forgiving = anytime_detectable_tv(20_000, 4, 1e-6, 0.1, rounding=0.02)
    assert forgiving > 3 * plain
    moved = np.array(list(perturbed(dict(enumerate(P)), forgiving).values()))
    counts = np.random.default_rng(10).multinomial(20_000, moved, size=RUNS)
    refuted = int((log_e_value(counts, P, rounding=0.02) >= math.log(1e6)).sum())
    assert at_least(refuted, RUNS, 0.87)


def test_one_cell_promises_nothing():
    assert anytime_detectable_tv(1000, 1, 1e-6, 0.1) == 1.0
