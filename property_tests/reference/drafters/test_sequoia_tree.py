"""The best shape of a draft tree of a size, and the budget that the hardware decides."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Task, argmax
from reference.algorithms import eagle_2
from reference.drafters.sequoia_tree import best_budget, sequoia_tree, tree_value
from reference.kv_cache import tree_depths
from reference.trees import regular_tree
from specverify.laws.draws import Tape
from test_support.laws.rational import P, Q, always

F = Fraction


# The best shape

chances = st.lists(st.integers(0, 9).map(lambda tenths: F(tenths, 10)), min_size=1, max_size=3).map(tuple)


@cache
def every_tree(size):
    """All shapes of ``size`` nodes below the root."""
    return [()] if size == 0 else [(*tree, up) for tree in every_tree(size - 1) for up in range(-1, size - 1)]


@given(chances, st.integers(1, 6), st.integers(0, 4))
def test_the_planned_tree_is_the_best_of_all(acceptance, size, depth):
    planned = sequoia_tree(acceptance, size, depth)
    assert len(planned.parents) < size
    assert max(tree_depths(planned.parents), default=-1) < depth
    assert planned.value == tree_value(acceptance, planned.parents)
    values = [
        tree_value(acceptance, tree)
        for nodes in range(size)
        for tree in every_tree(nodes)
        if max(tree_depths(tree), default=-1) < depth
    ]
    assert planned.value == max(values)


def best_first(acceptance, size):
    """The tree that grows by its best possible leaf, again and again."""
    parents = ()
    while len(parents) < size - 1:
        parents = max(((*parents, up) for up in range(-1, len(parents))), key=lambda tree: tree_value(acceptance, tree))
    return tree_value(acceptance, parents)


@given(chances, st.integers(1, 6))
def test_growing_by_the_best_leaf_is_optimal_for_numbers_that_do_not_increase(acceptance, size):
    falling = tuple(sorted(acceptance, reverse=True))
    assert best_first(falling, size) == sequoia_tree(falling, size, size).value


def test_the_known_values_of_planned_trees():
    rising = (F("0.5"), F("0.1"), F("0.9"))
    planned = sequoia_tree(rising, 4, 4)
    assert (planned.value, planned.parents, float(best_first(rising, 4))) == (F("2.5"), (-1, -1, -1), 1.875)
    falling = (F("0.6"), F("0.2"), F("0.1"))
    assert sequoia_tree(falling, 6, 6).value == F("2.5056")
    assert tree_value(falling, regular_tree((1,) * 5)) == F("2.38336")
    assert sequoia_tree(falling, 6, 0) == ((), 1)
    assert sequoia_tree(falling, 6, 1).value == F("1.9")


def test_the_hardware_decides_the_budget():
    acceptance = (F("0.6"), F("0.2"), F("0.1"))
    free = best_budget(acceptance, {1: 1, 2: 1, 4: 1, 6: 1}, 0, 5)
    assert (free.size, free.tree.value) == (6, F("2.5056"))
    assert best_budget(acceptance, {1: 1, 2: 1, 4: 1, 6: 1}, 10, 5)[:3] == (1, 0, 1)
    dear = best_budget(acceptance, {1: 1, 2: 1, 4: 9}, F("0.1"), 5)
    assert (dear.size, dear.depth, dear.cost_per_token) == (2, 1, F("1.1") / F("1.6"))


@pytest.mark.parametrize("wrong", [((F(1, 2),), 0, 1), ((F(1, 2),), 1, -1), ((F(-1, 2),), 2, 1)])
def test_a_tree_that_cannot_be_planned_is_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        sequoia_tree(*wrong)


def test_the_argmax_of_a_row_is_its_first_candidate():
    task = Task(always(P), always(Q), horizon=2)
    assert eagle_2.build(task, 1, 1, 1).propose(Tape(0), eagle_2.build(task).init((0,))).tokens == (argmax(Q),)
