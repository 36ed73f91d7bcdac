"""What the planned statistics cannot see, what they refute at once, the certificate, the budget, the refusals."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.statistics import (
    calibrated_level,
    detectable_total_variation,
    detectable_tv,
    divide_alarm,
    goodness_of_fit,
    largest_perturbation,
    noncentrality_needed,
    partition,
    perturbed,
    samples_for,
    samples_needed,
    tv_certificate,
)
from test_support.statistics.statistical import (
    GEOMETRIC,
    UNIFORM,
    WIDE,
    at_most,
    distance,
    draws,
    exhaustive,
)

# Pooling


@st.composite
def laws(draw, size):
    weights = draw(st.lists(st.integers(1, 10**6), min_size=size, max_size=size))
    return {token: weight / sum(weights) for token, weight in enumerate(weights)}


@st.composite
def pairs_of_laws(draw):
    size = draw(st.integers(2, 12))
    return draw(laws(size)), draw(laws(size))


@exhaustive
@given(pairs_of_laws(), st.integers(10, 10**5))
def test_pooling_hides_at_most_the_pooled_mass(pair, samples):
    law, other = pair
    cells = partition(law, samples)
    merged = distance({x: law[x] for x in cells.separate}, {x: other[x] for x in cells.separate})
    merged += abs(sum(law[x] for x in cells.pooled) - sum(other[x] for x in cells.pooled)) / 2
    assert merged <= distance(law, other) + 1e-12
    assert distance(law, other) <= merged + cells.pooled_mass + 1e-12


@exhaustive
@given(st.integers(1, 40).flatmap(laws), st.integers(1, 10**5), st.floats(0.5, 100))
def test_every_cell_expects_enough_samples(law, samples, minimum_expected):
    cells = partition(law, samples, minimum_expected)
    assert cells.separate.keys() | cells.pooled.keys() == law.keys()
    assert not cells.separate.keys() & cells.pooled.keys()
    assert len(cells.pooled) != 1
    expected = [samples * mass for mass in cells.separate.values()]
    expected += [samples * cells.pooled_mass] if cells.pooled else []
    assert len(expected) == cells.cells
    assert cells.cells == 1 or min(expected) >= minimum_expected * (1 - 1e-12)


def test_the_blind_spot_is_invisible_and_declared():
    law = {"often": 0.7} | dict.fromkeys(range(300), 0.001)
    biased = {"often": 0.7, 0: 0.3}
    assert distance(biased, law) == pytest.approx(0.299, rel=1e-9)
    fits = [goodness_of_fit(counts, law) for counts in draws(law | {x: biased.get(x, 0.0) for x in law}, 1000, 300, 8)]
    assert at_most(sum(fit.p_value <= 1e-3 for fit in fits), 300, 1.5e-3)
    assert {(fit.cells, fit.pooled_cells) for fit in fits} == {(2, 300)}
    declared = detectable_total_variation(law, 1000, 1e-3, 1e-3)
    assert declared == pytest.approx(detectable_tv(1000, 2, 1e-3, 1e-3) + 0.3, rel=1e-12)
    assert declared > distance(biased, law)


def test_a_pooled_cell_that_expects_too_little_takes_the_least_likely_of_the_others():
    law = {"a": 0.5, "b": 0.3, "c": 0.19, "d": 0.006, "e": 0.004}
    cells = partition(law, 500)
    assert set(cells.separate) == {"a", "b"}
    assert set(cells.pooled) == {"c", "d", "e"}
    fit = goodness_of_fit({"a": 250, "b": 150, "c": 60, "d": 40, "e": 0}, law)
    assert (fit.cells, fit.pooled_cells, fit.statistic) == (3, 3, pytest.approx(0.0, abs=1e-20))
    assert fit.pooled_mass == pytest.approx(0.2, rel=1e-12)
    assert fit.tv_observed == pytest.approx(40 / 500 - 0.006, rel=1e-9)


def test_the_partition_does_not_depend_on_the_counts():
    # The samples are of another law, unsupported outcomes included.
    fits = [goodness_of_fit(counts, GEOMETRIC) for counts in draws(WIDE | GEOMETRIC, 1000, 50, seed=4)]
    assert {(fit.cells, fit.pooled_cells) for fit in fits} == {(7, 25)}


# Outcomes of probability zero


@pytest.mark.parametrize("law", [{"x": 1.0}, {"x": 0.5, "y": 0.5}, {"x": 0.5, "y": 0.5, "z": 0.0}])
def test_an_outcome_of_probability_zero_refutes_at_once(law):
    assert goodness_of_fit({"x": 500_000, "z": 0}, {"x": 1.0}).p_value == 1.0
    fit = goodness_of_fit({"x": 500_000, "y": 500_000, "z": 1} if "y" in law else {"x": 999_999, "z": 1}, law)
    assert (fit.p_value, fit.statistic, fit.unsupported) == (0.0, math.inf, ("z",))
    assert fit.tv_observed == pytest.approx(1e-6, rel=1e-6)


# The perturbation


@exhaustive
@given(st.integers(2, 40).flatmap(laws), st.floats(0, 1))
def test_a_perturbed_law_is_a_law_at_the_distance_asked_for(law, fraction):
    tv = fraction * largest_perturbation(law)
    moved = perturbed(law, tv)
    assert moved.keys() == law.keys()
    assert min(moved.values()) >= -1e-15
    assert math.fsum(moved.values()) == pytest.approx(1.0, abs=1e-12)
    assert distance(moved, law) == pytest.approx(tv, abs=1e-12)
    noncentrality = math.fsum((moved[x] - law[x]) ** 2 / law[x] for x in law)
    assert noncentrality >= 4 * tv**2 * (1 - 1e-9) - 1e-12


def test_the_perturbation_of_a_balanced_law_is_the_hardest_to_see():
    moved = perturbed(UNIFORM, 0.1)
    assert math.fsum((moved[x] - UNIFORM[x]) ** 2 / UNIFORM[x] for x in UNIFORM) == pytest.approx(0.04, rel=1e-12)


# The certificate and the alarm budget


@pytest.mark.parametrize("miss", [0.05, 0.3])
@pytest.mark.parametrize(("true", "null"), [([0.6, 0.4], [0.5, 0.5]), ([0.1] * 10, [0.19] + [0.09] * 9)])
def test_the_certificate_covers_the_true_distance(true, null, miss):
    true, null, samples, runs = np.array(true), np.array(null), 100, 5000
    actual = np.abs(true - null).sum() / 2
    counts = np.random.default_rng(5).multinomial(samples, true, size=runs)
    observed = np.abs(counts / samples - null).sum(axis=1) / 2
    violated = sum(tv_certificate(float(value), samples, len(true), miss) < actual for value in observed)
    assert at_most(violated, runs, miss)


def test_the_radius_of_the_certificate_covers_the_empirical_law():
    samples, runs, miss = 50, 5000, 0.5
    hits = np.random.default_rng(6).binomial(samples, 0.5, size=runs)
    beyond = np.abs(hits / samples - 0.5) > tv_certificate(0.0, samples, 2, miss)
    assert at_most(int(beyond.sum()), runs, miss)


def test_the_certificate_is_the_sum_of_its_three_terms():
    assert tv_certificate(0.1, 10_000, 101, 0.01) == pytest.approx(0.1 + 0.05 + 0.0151742712938, rel=1e-10)
    assert tv_certificate(0.9, 10, 1000, 0.01) == 1.0
    assert tv_certificate(0.0, 200, 1, math.exp(-1)) == pytest.approx(0.05, rel=1e-12)


@exhaustive
@given(st.floats(1e-12, 0.5), st.integers(1, 10**6))
def test_the_alarm_budget_is_never_exceeded(total, parts):
    budget = divide_alarm(total, parts)
    assert (budget.total, budget.parts) == (total, parts)
    assert budget.each * parts == pytest.approx(total, rel=1e-12)
    # The union bound holds for dependent tests; for independent ones the run's false alarm is below it.
    assert -math.expm1(parts * math.log1p(-budget.each)) <= total * (1 + 1e-9)


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: detectable_tv(0, 2, 0.01, 0.01), "samples is 0, expected a whole number of at least 1"),
        (lambda: detectable_tv(10, 0, 0.01, 0.01), "cells is 0, expected a whole number of at least 1"),
        (lambda: detectable_tv(10, 2.5, 0.01, 0.01), "cells is 2.5, expected a whole number of at least 1"),
        (
            lambda: detectable_tv(10, 2, 0.0, 0.01),
            "false_alarm is 0.0, expected a probability strictly between 0 and 1",
        ),
        (lambda: detectable_tv(10, 2, 0.01, 1), "miss is 1, expected a probability strictly between 0 and 1"),
        (lambda: detectable_tv(10, 2, 0.5, 0.5), "false_alarm + miss is 1.0, expected less than 1: a coin"),
        (lambda: samples_needed(1.0, 2, 0.01, 0.01), "tv is 1.0, expected a probability strictly between 0 and 1"),
        (
            lambda: samples_needed(0.1, 1, 0.01, 0.01),
            "one cell cannot show a total variation of 0.1, expected at least",
        ),
        (lambda: noncentrality_needed(1, 0.01, 0.01), "cells is 1, expected a whole number of at least 2"),
        (lambda: goodness_of_fit({}, UNIFORM), "the counts hold no sample, expected at least one"),
        (lambda: goodness_of_fit({0: 0}, UNIFORM), "the counts hold no sample, expected at least one"),
        (lambda: goodness_of_fit({0: -1}, UNIFORM), "the count of 0 is -1, expected a whole number of at least 0"),
        (lambda: goodness_of_fit({0: 1.5}, UNIFORM), "the count of 0 is 1.5, expected a whole number of at least 0"),
        (lambda: goodness_of_fit({0: 1}, UNIFORM, 0.0), "minimum_expected is 0.0, expected a positive number"),
        (lambda: goodness_of_fit({"x": 9}, {"x": 0.9}), "the law's 1 probabilities sum to 0.9, expected 1 within"),
        (lambda: goodness_of_fit({"x": 9}, {}), "the law's 0 probabilities sum to 0.0, expected 1 within"),
        (lambda: goodness_of_fit({"x": 9}, {"x": 1.1, "y": -0.1}), "the law gives 'y' probability -0.1, expected"),
        (lambda: goodness_of_fit({"x": 9}, {"x": math.nan}), "the law gives 'x' probability nan, expected"),
        (
            lambda: samples_for(UNIFORM, 1e-7, 1e-3, 1e-3),
            "1000000000000 samples do not detect a total variation of 1e-07",
        ),
        (lambda: calibrated_level(1.0), "level is 1.0, expected a probability strictly between 0 and 1"),
        (
            lambda: perturbed(UNIFORM, 0.6),
            "cannot move the law by a total variation of 0.6, expected one between 0 and",
        ),
        (lambda: tv_certificate(1.5, 10, 2, 0.1), "tv_observed is 1.5, expected a total variation between 0 and 1"),
        (lambda: tv_certificate(0.5, 0, 2, 0.1), "samples is 0, expected a whole number of at least 1"),
        (lambda: tv_certificate(0.5, 10, 0, 0.1), "support_size is 0, expected a whole number of at least 1"),
        (lambda: divide_alarm(0.0, 3), "total is 0.0, expected a probability strictly between 0 and 1"),
        (lambda: divide_alarm(0.1, 0), "parts is 0, expected a whole number of at least 1"),
    ],
)
def test_a_refusal_says_what_was_wrong_and_what_was_expected(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
