"""Evidence where no law is known: two samplers, and two things that were seen together."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specverify.statistics.unknown_laws import dependence_gains, evidence, two_sample_gains
from test_support.statistics.statistical import at_most

P = np.array([0.1, 0.2, 0.3, 0.4])
RUNS = 1500


def highest_of_two(rng, first, second, runs=RUNS, batches=25, size=50):
    """Return the highest logarithm of the evidence that ``runs`` pairs of samplers ever reach."""
    past = np.zeros((2, runs, len(first)))
    total, highest = 0.0, np.full(runs, -np.inf)
    for _ in range(batches):
        new = np.array([rng.multinomial(size, law, size=runs) for law in (first, second)])
        total = total + two_sample_gains(*past, *new)
        past += new
        highest = np.maximum(highest, evidence(total))
    return highest


def test_two_samplers_of_one_law_are_told_apart_no_more_often_than_declared():
    for law in (P, np.full(30, 1 / 30)):
        highest = highest_of_two(np.random.default_rng(1), law, law)
        for alarm in (0.2, 0.05):
            assert at_most(int((highest >= -math.log(alarm)).sum()), RUNS, alarm)


def test_two_samplers_of_two_laws_are_told_apart():
    moved = np.array([0.2, 0.2, 0.2, 0.4])
    assert (highest_of_two(np.random.default_rng(2), P, moved, runs=200, batches=60) >= math.log(1e6)).mean() > 0.95


def test_estimates_that_know_the_batch_they_judge_alarm_too_often():
    """The negative control: the estimate must come from earlier batches alone."""
    rng = np.random.default_rng(3)
    new = [rng.multinomial(200, np.full(30, 1 / 30), size=RUNS) for _ in range(2)]
    alarms = int((evidence(two_sample_gains(*new, *new)) >= math.log(5)).sum())
    assert not at_most(alarms, RUNS, 0.2)


def test_a_batch_of_unequal_parts_is_refused():
    with pytest.raises(ValueError, match="the two parts of a batch differ in size"):
        two_sample_gains([0, 0], [0, 0], [1, 2], [1, 1])


def test_new_outcomes_are_no_evidence_until_they_come_again():
    assert (two_sample_gains([5, 0], [5, 0], [0, 9], [9, 0]) == 0).all()
    assert (two_sample_gains([5, 9], [14, 0], [0, 9], [9, 0]) > 0).all()


def highest_of_couples(rng, couples, batches=20):
    """Return the highest evidence that the couples of ``couples(rng)`` -> (left, right) are dependent."""
    past, total, highest = np.zeros((4, 4)), 0.0, -math.inf
    for _ in range(batches):
        left, right = couples(rng)
        total = total + dependence_gains(past, left, right)
        np.add.at(past, (left, right), 1)
        highest = max(highest, evidence(total))
    return highest


def alone(rng):
    return rng.choice(4, 40, p=P), rng.choice(4, 40, p=P[::-1])


def copied_sometimes(rng):
    left, right = rng.choice(4, 40, p=P), rng.choice(4, 40, p=P)
    return left, np.where(rng.random(40) < 0.5, left, right)


@pytest.mark.thorough
def test_what_is_independent_is_called_dependent_no_more_often_than_declared():
    rng = np.random.default_rng(4)
    highest = np.array([highest_of_couples(rng, alone) for _ in range(600)])
    assert at_most(int((highest >= math.log(10)).sum()), 600, 0.1)


def test_what_is_copied_half_of_the_time_is_found_and_soon():
    rng = np.random.default_rng(5)
    assert sum(highest_of_couples(rng, copied_sometimes) >= math.log(1e6) for _ in range(50)) >= 45
    always = lambda rng: (drawn := rng.choice(4, 40, p=P), drawn)  # noqa: E731
    assert sum(highest_of_couples(rng, always, batches=4) >= math.log(1e6) for _ in range(50)) == 50


def test_one_outcome_for_all_is_no_evidence_of_anything():
    same = np.zeros(40, int)
    assert evidence(dependence_gains(np.full((4, 4), 3.0), same, same)) == pytest.approx(0, abs=1e-12)
