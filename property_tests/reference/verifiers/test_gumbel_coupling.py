"""The coupling of two exponential races: marginals, agreement, and the joint law of the winners."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from property_tests.reference.verifiers.test_block_verification import normal
from reference import total_variation
from reference.verifiers.gumbel_coupling import agreement_probability, draft_given_target
from test_support.laws.rational import (
    P,
    Q,
    pmf,
)

weights = st.lists(st.integers(0, 6), min_size=3, max_size=4).filter(any)

pairs = st.tuples(weights, weights).filter(lambda pair: len(pair[0]) == len(pair[1]))


@given(pairs)
def test_the_two_winners_of_a_race_have_their_laws_and_agree_as_the_formula_says(pair):
    p, q = map(normal, pair)
    rows = {y: draft_given_target(p, q, y) for y, mass in enumerate(p) if mass > 0}
    assert all(sum(row) == 1 and min(row) >= 0 for row in rows.values())
    assert sum(p[y] * row for y, row in rows.items()).tolist() == q.tolist()
    assert sum(p[y] * row[y] for y, row in rows.items()) == agreement_probability(p, q)
    distance_ = total_variation(p, q)
    assert (1 - distance_) / (1 + distance_) <= agreement_probability(p, q) <= 1 - distance_


@pytest.mark.parametrize("pair", [(P, Q), (pmf(".5", ".5", 0), pmf(0, ".25", ".75"))], ids=["known", "zeros"])
def test_the_joint_law_of_the_winners_is_that_of_races(pair):
    """200 000 races: every cell within six standard deviations of its exact probability."""
    p, q = pair
    number = 200_000
    noise = np.random.default_rng(3).exponential(size=(number, len(p)))
    with np.errstate(divide="ignore"):
        y, d = (np.argmin(noise / np.array(row, dtype=float), axis=1) for row in pair)
    for i, mass in enumerate(p):
        for j in range(len(q)):
            exact = float(mass * draft_given_target(p, q, i)[j]) if mass > 0 else 0.0
            slack = 6 * math.sqrt(exact * (1 - exact) / number)
            assert abs(np.mean((y == i) & (d == j)) - exact) <= slack


def test_winners_of_a_race_in_floats():
    p, q = (np.array(row, dtype=float) for row in (P, Q))
    exact = [float(mass) for mass in draft_given_target(P, Q, 2)]
    assert draft_given_target(p, q, 2).tolist() == pytest.approx(exact)
    assert agreement_probability(p, q) == pytest.approx(18 / 35)


def test_a_vocabulary_of_one_token_agrees_always():
    one = pmf(1)
    assert agreement_probability(one, one) == 1
    assert draft_given_target(one, one, 0).tolist() == [1]
