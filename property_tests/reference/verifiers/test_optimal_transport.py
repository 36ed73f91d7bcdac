"""The optimal transport plan of a set of candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from property_tests.reference.test_tree_rounds import Kept
from reference import Draft, Verified, chain
from reference.drafters.tree import (
    independent,
    without_replacement,
)
from reference.transport import candidate_set_law, optimum
from reference.verifiers.optimal_transport import optimal_transport
from test_support.laws.rational import P, Q, always, examples, law_of, pmf
from test_support.reference.multi_draft_rules import accepted, counts, pairs
from test_support.reference.narrated import LAST, played

SIBLINGS = Draft((0, 1), (-1, -1), (Q, Q))
"""Two candidates for one position, both drawn from Q."""


@pytest.mark.parametrize("replacement", [True, False])
@examples(20)
@given(pair=pairs, count=counts)
def test_the_optimal_plan_accepts_the_dual_value(replacement, pair, count):
    p, q = pair
    pick = independent if replacement else without_replacement
    sets = candidate_set_law(q, count, replacement)
    assert sum(sets.values()) == 1
    assert accepted(p, q, count, pick, optimal_transport(replacement)) == optimum(p, sets)


def test_a_plan_that_chooses_none_emits_what_the_target_is_owed():
    """Of two draws from Q the target (1/10, 3/20, 3/4) accepts too little of the last token."""
    target = pmf(".1", ".15", ".75")
    done = played(target, optimal_transport(replacement=True), SIBLINGS, (3, 2))
    assert [site for site, _ in done.decisions] == [("choose", 0), ("residual", 0)]
    assert done.decisions[1][1] == LAST
    assert done.verified == Verified((2,), 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
def test_a_plan_draws_from_arrays_of_the_targets_type(dtype):
    row, draws = np.array(P, dtype=dtype), Kept([3, 2])
    verify = optimal_transport(replacement=True)
    assert verify(draws, always(row), (), SIBLINGS._replace(pmfs=(Q.astype(dtype),) * 2)).accepted == 0
    assert [asked.dtype for asked in draws.asked] == [dtype, dtype]


def test_a_plan_that_rounding_leaves_a_rejection_and_nothing_owed_emits_from_the_target():
    """For p = q every draft stays; in float64 its share can be an epsilon below 1."""
    weights, draws = np.array([0.6, 0.5, 0.3]), Kept([3, 2])
    row = weights / weights.sum()
    draft = Draft((0,), (-1,), (row,))
    assert optimal_transport(replacement=False)(draws, always(row), (), draft) == Verified((2,), 0)
    assert 0 < draws.asked[0][3] < 1e-15
    assert draws.asked[1].tolist() == row.tolist()


@pytest.mark.parametrize("replacement", [True, False])
def test_a_plan_for_one_token_accepts_it(replacement):
    one = pmf(1)
    verify = optimal_transport(replacement)
    assert law_of(lambda draws: verify(draws, always(one), (), chain((0,), (one,)))) == {Verified((0, 0), 1): 1}
