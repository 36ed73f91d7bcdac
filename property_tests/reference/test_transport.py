"""How often several candidates are accepted: closed forms, orders and bounds, and numbers on a known pair."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from reference import Task
from reference.algorithms import block_verification, transport_optimum
from reference.drafters.tree import (
    excluding,
    most_likely,
    sampled_then_most_likely,
    tree_drafter,
    without_replacement,
)
from reference.pmf import top_tokens
from reference.transport import candidate_set_law, optimal_plan, optimum
from reference.tree_rounds import tree_decoder
from reference.verifiers import k_seq as k_seq_rule
from reference.verifiers import recursive_rejection as rejection
from reference.verifiers.candidate_set import candidate_set
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.laws.model_strategies import pmf_pairs, prompts, tasks
from test_support.laws.rational import P, Q, always, examples, pmf
from test_support.reference.multi_draft_rules import RULES, accepted, counts, expected_tokens, pairs

F = Fraction


# Acceptance in closed form


@examples(20)
@given(pairs, counts)
def test_the_hybrid_accepts_its_top_and_the_overlap_of_the_rest(pair, count):
    p, q = pair
    top = top_tokens(q, count - 1)
    rest = excluding(q, top)
    outside = pmf(*(token not in top for token in range(len(q))))
    closed = sum(p[token] for token in top) + (0 if rest is None else np.minimum(p * outside, rest).sum())
    assert accepted(p, q, count, sampled_then_most_likely, recursive_rejection) == closed


# Orders and bounds


def membership(p, q, count):
    return (p * (1 - (1 - q) ** count)).sum()


@examples(60)
@given(st.integers(2, 4).flatmap(pmf_pairs), counts)
def test_membership_rejection_k_seq_and_the_optimum_stand_in_this_order(pair, count):
    p, q = pair
    best = optimum(p, candidate_set_law(q, count, replacement=True))
    in_turn = rejection.acceptance(p, (q,) * count)
    level = k_seq_rule.acceptance(p, q, count, 30)
    assert membership(p, q, count) <= in_turn <= level + F(1, 2**20)
    assert level <= best
    assert level + F(1, 2**20) >= (1 - (1 - F(1, count)) ** count) * best
    without = optimum(p, candidate_set_law(q, count, replacement=False))
    assert best <= without
    assert accepted(p, q, count, without_replacement, recursive_rejection) <= without


def hybrid_set_law(q, count):
    top = top_tokens(q, count - 1)
    rest = excluding(q, top)
    if rest is None:
        return {frozenset(top): F(1)}
    return {frozenset({*top, token}): mass for token, mass in enumerate(rest.tolist()) if mass > 0}


@examples(60)
@given(st.integers(2, 4).flatmap(pmf_pairs), counts)
def test_the_hybrid_is_the_transport_optimum_of_its_own_draft_law(pair, count):
    p, q = pair
    assert accepted(p, q, count, sampled_then_most_likely, recursive_rejection) == optimum(p, hybrid_set_law(q, count))


def transport_by_linear_programme(p, sets):
    """Maximise the mass of (S, y) with y in S under both marginals."""
    edges = [(drawn, token) for drawn in sets for token in sorted(drawn)]
    rows = [[float(edge[0] == drawn) for edge in edges] for drawn in sets]
    rows += [[float(edge[1] == token) for edge in edges] for token in range(len(p))]
    limits = [float(mass) for mass in (*sets.values(), *p)]
    return -linprog([-1.0] * len(edges), A_ub=rows, b_ub=limits, bounds=(0, None)).fun


@pytest.mark.parametrize("replacement", [True, False])
@examples(30)
@given(pair=st.integers(2, 4).flatmap(pmf_pairs), count=counts)
def test_flow_cut_and_linear_programme_agree(replacement, pair, count):
    p, q = pair
    sets = candidate_set_law(q, count, replacement)
    best = optimum(p, sets)
    plan = optimal_plan(p, sets)
    assert sum(sum(row.values()) for row in plan.accepted.values()) == best == 1 - sum(plan.owed)
    assert all(sum(row.values()) <= sets[drawn] and min(row.values()) >= 0 for drawn, row in plan.accepted.items())
    assert float(best) == pytest.approx(transport_by_linear_programme(p, sets), abs=1e-9)
    floats = optimal_plan(p.astype(float), {drawn: float(mass) for drawn, mass in sets.items()})
    assert 1 - sum(floats.owed) == pytest.approx(float(best), abs=1e-12)


@examples(20)
@given(tasks(2, 3, 3), prompts(2))
def test_a_further_leaf_never_lowers_what_is_emitted(task, prompt):
    task = task._replace(eos=())
    shapes = [(), (-1,), (-1, -1), (-1, -1, 0), (-1, -1, 0, 0), (-1, -1, 0, 0, 1)]
    for pick, verify in ((most_likely, candidate_set), (without_replacement, recursive_rejection)):
        found = [expected_tokens(tree_decoder(task, tree_drafter(task.draft, s, pick), verify), prompt) for s in shapes]
        assert found == sorted(found)


def test_the_transport_optimum_is_one_of_positions_and_not_of_blocks():
    """One candidate at each of two positions: 1 + 1/9 drafts position by position, 1 + 2/9 as one block."""
    task = Task(always(pmf("1/3", "2/3")), always(pmf("2/3", "1/3")), horizon=3)
    drafts = [
        expected_tokens(transport_optimum.build(task, branching=(1, 1), replacement=replacement)) - 1
        for replacement in (True, False)
    ]
    assert drafts == [F(10, 9), F(10, 9)]
    assert expected_tokens(block_verification.build(task, gamma=2)) - 1 == F(11, 9)


# Numbers on the known pair

KNOWN = {
    "recursive rejection with replacement": (F(3, 5), F(16, 25), F(169, 250)),
    "recursive rejection without replacement": (F(3, 5), F(7, 10), F(1)),
    "membership of sampled candidates": (F(13, 50), F(52, 125), F(2599, 5000)),
    "transport with replacement": (F(3, 5), F(69, 100), F(771, 1000)),
    "transport without replacement": (F(3, 5), F(111, 140), F(1)),
    "hybrid": (F(3, 5), F(3, 4), F(1)),
    "candidate set": (F(1, 5), F(1, 2), F(1)),
    "traversal with replacement": (F(3, 5), F(16, 25), F(169, 250)),
    "traversal without replacement": (F(3, 5), F(7, 10), F(1)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_known_acceptance_of_one_two_and_three_candidates(name):
    assert tuple(accepted(P, Q, count, *RULES[name]) for count in (1, 2, 3)) == KNOWN[name]
