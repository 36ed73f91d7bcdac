"""The coupling of a list of races with one race of the target."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from reference.verifiers.gumbel_coupling import draft_given_target
from reference.verifiers.gumbel_list import list_given_target
from specverify.laws.model_strategies import pmf_pairs
from test_support.laws.rational import P, Q, examples

F = Fraction


def matching(p, laws):
    return sum(p[y] * sum(mass for drafts, mass in np.ndenumerate(law) if y in drafts) for y, law in laws.items())


def test_the_law_of_a_list_is_of_the_pmf_s_type_and_a_vocabulary_may_be_one_token():
    assert list_given_target(np.array([F(1)]), np.array([F(1)]), 2, 0).tolist() == [[1]]
    halves = np.array([0.5, 0.5], dtype=np.float32)
    assert list_given_target(halves, halves, 2, 0).dtype == np.float32


@examples(15)
@given(pmf_pairs(3))
def test_one_list_is_the_coupling_of_two_races(pair):
    p, q = pair
    for token in (token for token in range(3) if p[token]):
        assert list_given_target(p, q, 1, token).tolist() == draft_given_target(p, q, token).tolist()


@examples(5)
@given(pmf_pairs(3))
def test_drafts_of_a_list_have_the_law_of_q_and_longer_lists_match_more(pair):
    p, q = pair
    matched = []
    for count in (1, 2, 3):
        laws = {token: list_given_target(p, q, count, token) for token in range(3) if p[token]}
        assert all(law.sum() == 1 for law in laws.values())
        whole = sum(p[token] * law for token, law in laws.items())
        for place in range(count):
            assert whole.sum(axis=tuple(axis for axis in range(count) if axis != place)).tolist() == q.tolist()
        matched.append(matching(p, laws))
        bound = sum(
            count / sum(max(p[i] / p[j], q[i] / q[j]) + (count - 1) * p[i] / p[j] for i in range(3))
            for j in range(3)
            if p[j] and q[j]
        )
        assert matched[-1] >= bound
    assert matched == sorted(matched)


def test_races_that_are_run_match_as_often_as_the_formula_says():
    """200 000 races of two lists; alarm 1e-9 by Hoeffding. Independent lists would match 76 % of the time."""
    rng, runs = np.random.default_rng(0), 200_000
    noise = rng.exponential(size=(runs, 2, 3))
    p, q = P.astype(float), Q.astype(float)
    drafts = (noise / q).argmin(axis=2)
    targets = (noise.min(axis=1) / p).argmin(axis=1)
    seen = (drafts == targets[:, None]).any(axis=1).mean()
    expected = float(matching(P, {token: list_given_target(P, Q, 2, token) for token in range(3)}))
    allowed = math.sqrt(math.log(2 / 1e-9) / (2 * runs))
    assert expected == pytest.approx(21337 / 33600)
    assert abs(seen - expected) < allowed < abs(1 - (1 - 18 / 35) ** 2 - expected)
