"""K-SEQ: the valid rho, the residual, the acceptance, and its precision."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import (
    Draft,
    Verified,
    accept_probability,
)
from reference.drafters.tree import (
    independent,
)
from reference.verifiers import k_seq as k_seq_rule
from reference.verifiers.k_seq import acceptance, k_seq, least_rho, leftover
from test_support.laws.rational import P, Q, always, examples, law_of
from test_support.reference.multi_draft_rules import accepted, counts, pairs
from test_support.reference.narrated import Done, coin, played

F = Fraction

SIBLINGS = Draft((0, 1), (-1, -1), (Q, Q))
"""Two candidates for one position, both drawn from Q."""


@examples(20)
@given(pairs, counts)
def test_k_seq_accepts_as_its_formula_says(pair, count):
    p, q = pair
    assert accepted(p, q, count, independent, k_seq(8)) == k_seq_rule.acceptance(p, q, count, 8)


@examples(40)
@given(pairs, counts, st.integers(0, 8))
def test_every_rho_above_the_least_is_valid_and_owes_nothing_negative(pair, count, eighths):
    p, q = pair
    least = k_seq_rule.least_rho(p, q, count, 8)
    rho = least + F(eighths, 8) * (count - least)
    assert 1 <= least <= count
    assert k_seq_rule.is_valid(p, q, rho, count)
    rate = k_seq_rule.beta(p, q, rho)
    taken = k_seq_rule.capped(p, q, rho) * ((1 - (1 - rate) ** count) / rate if rate else 0)
    assert (p - taken >= 0).all()
    assert k_seq_rule.leftover(p, q, rho, count).sum() == 1


def test_the_known_acceptance_of_k_seq():
    rows = [(k_seq_rule.least_rho(P, Q, count, 40), k_seq_rule.acceptance(P, Q, count)) for count in (1, 2, 3)]
    assert [(round(float(rho), 7), round(float(rate), 7)) for rho, rate in rows] == [
        (1.0, 0.6),
        (1.5844289, 0.6584429),
        (2.1000308, 0.7100031),
    ]


def test_k_seq_asks_one_coin_a_candidate():
    rho = least_rho(P, Q, 2, 1)
    coins = tuple((("accept", 0, k), coin(accept_probability(P, rho * Q, k))) for k in range(2))
    last = (("residual", 0), leftover(P, Q, rho, 2).tolist())
    assert played(P, k_seq(1), SIBLINGS, (1, 1, 2)) == Done((*coins, last), ((),), Verified((2,), 0))


def test_candidates_of_equal_laws_may_hold_them_in_two_arrays():
    settings = [(k_seq(2), SIBLINGS._replace(pmfs=pmfs), (1, 0, 2)) for pmfs in ((Q, Q), (Q, Q.copy()))]
    assert played(P, *settings[0]) == played(P, *settings[1])


def test_the_precision_of_rho_is_sixteen_bits_and_that_of_the_rate_forty_unless_told_otherwise():
    three = Draft((0, 1, 2), (-1,) * 3, (Q,) * 3)
    first, finer = (coin(accept_probability(P, least_rho(P, Q, 3, bits) * Q, 0)) for bits in (16, 17))
    assert played(P, k_seq(), three, (0, 2)).decisions[0] == (("accept", 0, 0), first) != (("accept", 0, 0), finer)
    assert acceptance(P, Q, 2) == acceptance(P, Q, 2, 40) != acceptance(P, Q, 2, 41)


@pytest.mark.parametrize("count", [2, 3])
def test_rho_is_found_in_floats_as_in_fractions(count):
    """Bisection meets dyadic numbers alone, which are exact in float64."""
    found = least_rho(P.astype(float), Q.astype(float), count, 16)
    assert type(found) is float
    assert found == least_rho(P, Q, count, 16) > 1


def test_candidates_of_different_laws_are_no_k_seq():
    draft = Draft((0, 1), (-1, -1), (P, Q))
    with pytest.raises(ValueError, match="the 2 candidates at depth 0 have different pmfs, expected one for all"):
        law_of(lambda draws: k_seq(4)(draws, always(P), (), draft))
    with pytest.raises(ValueError, match="bits is 0, expected at least 1"):
        k_seq(0)
