"""Traversal verification of a tree."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from property_tests.reference.test_tree_rounds import Kept
from reference import (
    Draft,
    Task,
    Verified,
)
from reference.drafters.tree import (
    independent,
    tree_drafter,
    without_replacement,
)
from reference.tree_rounds import tree_decoder
from reference.trees import regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from reference.verifiers.traversal import traversal
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import always, examples, pmf
from test_support.reference.multi_draft_rules import (
    counts,
    expected_tokens,
    one_level,
    pairs,
)

F = Fraction


def emitted(task, branching, pick, prompt):
    """Expected tokens of a round by recursive rejection and by traversal."""
    drafter = tree_drafter(task.draft, regular_tree(branching), pick)
    return tuple(
        expected_tokens(tree_decoder(task, drafter, rule), prompt) for rule in (recursive_rejection, traversal)
    )


def test_traversal_goes_on_from_the_target_where_rounding_leaves_nothing_owed_at_the_root():
    """Two float kernels can leave p below q everywhere; the next child is then judged by p as the first was."""
    p, q = np.array([0.3, np.nextafter(0.7, 0)]), np.array([0.3, 0.7])
    draws = Kept([1, 0, 1])
    assert traversal(draws, always(p), (), Draft((1, 0), (-1, -1), (q, q))) == Verified((0, 1), 1)
    assert [row.tolist() for row in draws.asked[1:]] == [[1, 0], p.tolist()]
    assert 0 < draws.asked[0][1] < 1e-15


@pytest.mark.parametrize(
    ("branching", "pick"),
    [
        ((1, 1), independent),
        ((1, 2), independent),
        ((1, 1), without_replacement),
        ((1, 2), without_replacement),
        ((2, 1), without_replacement),
    ],
)
@examples(12)
@given(task=tasks(2, 3, 3), prompt=prompts(2))
def test_traversal_never_emits_fewer_tokens(branching, pick, task, prompt):
    level, whole = emitted(task._replace(eos=()), branching, pick, prompt)
    assert level <= whole


def test_traversal_can_emit_fewer_tokens_where_equal_siblings_have_children():
    """Two equal siblings 0 are accepted; a child is rejected with 1/3, and the other's then accepted with 1/3."""
    p = {(): pmf(F(4, 5), F(1, 5)), (0,): pmf(F(2, 3), F(1, 3)), (1,): pmf(F(0), F(1))}
    q = {(): pmf(F(1, 3), F(2, 3)), (0,): pmf(F(1, 3), F(2, 3)), (1,): pmf(F(0), F(1))}
    task = Task(lambda tokens: p.get(tokens[1:], p[1,]), lambda tokens: q.get(tokens[1:], q[1,]), horizon=3)
    level, whole = emitted(task, (2, 1), independent, (0,))
    assert (level, whole) == (F(902, 405), F(299, 135))
    assert level - whole == q[()][0] ** 2 * F(1, 3) * F(1, 3)


@pytest.mark.parametrize("replacement", [True, False])
@examples(15)
@given(pair=pairs, count=counts)
def test_traversal_of_one_level_is_recursive_rejection(replacement, pair, count):
    p, q = pair
    pick = independent if replacement else without_replacement
    assert one_level(p, q, count, pick, traversal) == one_level(p, q, count, pick, recursive_rejection)
