"""Acceptance of a target token that is among the candidates."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from reference import Draft
from reference.drafters.tree import (
    most_likely,
    without_replacement,
)
from reference.pmf import top_tokens
from reference.verifiers.candidate_set import candidate_set
from reference.verifiers.recursive_rejection import recursive_rejection
from test_support.laws.rational import P, Q, always, examples, law_of, project
from test_support.reference.multi_draft_rules import (
    accepted,
    counts,
    one_level,
    pairs,
)

F = Fraction


def test_membership_without_replacement_has_its_known_acceptance():
    assert accepted(P, Q, 2, without_replacement, candidate_set) == F(1189, 2100)


@examples(20)
@given(pairs, counts)
def test_candidate_sets_are_recursive_rejection_of_point_masses(pair, count):
    p, q = pair
    law = one_level(p, q, count, most_likely, candidate_set)
    assert law == one_level(p, q, count, most_likely, recursive_rejection)
    chosen = top_tokens(q, count)
    assert project(law, lambda outcome: outcome[1]).get(1, 0) == sum(p[token] for token in chosen)


@examples(15)
@given(pairs, st.permutations(range(3)), counts)
def test_the_order_of_point_masses_changes_nothing(pair, order, count):
    p, _ = pair
    tokens = tuple(token for token in order if token < len(p))[:count]
    drafts = [Draft(turned, (-1,) * len(tokens), (None,) * len(tokens)) for turned in permutations(tokens)]
    laws = [law_of(lambda draws, d=draft: candidate_set(draws, always(p), (), d).tokens[0]) for draft in drafts]
    accepts = [law_of(lambda draws, d=draft: recursive_rejection(draws, always(p), (), d).accepted) for draft in drafts]
    assert all(law == laws[0] for law in laws)
    assert all(law == accepts[0] for law in accepts)
