"""How draft trees are built: by the draft's scores, heads, retrieval and sequences, and the best shape of a size."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Draft, Task, argmax
from reference.algorithms import eagle_2
from reference.drafters.dynamic_tree import dynamic_tree_drafter
from reference.drafters.heads import heads_drafter
from reference.drafters.retrieval import continuations, retrieval_drafter
from reference.drafters.sequences import sequences_drafter
from reference.drafters.sequoia_tree import best_budget, sequoia_tree, tree_value
from reference.kv_cache import tree_depths
from reference.trees import check_draft, path_tokens, regular_tree
from specverify.laws.draws import Tape
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import P, Q, always, pmf

F = Fraction


# Dynamic trees


@given(tasks(3, 2, 5), prompts(3), st.integers(1, 3), st.integers(0, 3), st.integers(1, 8))
def test_a_dynamic_tree_holds_the_best_paths(task, prompt, width, depth, nodes):
    """With as many branches as tokens, the best ``nodes`` of all paths, ties to the shallower."""
    drafter = dynamic_tree_drafter(task.draft, width, depth, nodes)
    draft = check_draft(drafter.propose(None, None, prompt, 9, None))
    spelled = [path_tokens(draft, node) for node in range(len(draft.tokens))]
    assert len(spelled) <= nodes

    @cache
    def score(path):
        return score(path[:-1]) * task.draft(prompt + path[:-1])[path[-1]] if path else F(1)

    if width == 3:
        everything = [path for length in range(1, depth + 1) for path in product(range(3), repeat=length)]
        values = sorted((score(path) for path in everything if score(path)), reverse=True)[:nodes]
        if len(values) and 3**depth <= 9:
            assert sorted(map(score, spelled), reverse=True) == values


def test_ties_prefer_the_parent():
    """A drafter that is certain: every score is 1, and only the first nodes of the chain are connected."""
    drafter = dynamic_tree_drafter(always(pmf(0, 1)), 2, 4, 2)
    assert drafter.propose(None, None, (0,), 9, None) == Draft((1, 1), (-1, 0), (None, None))


@pytest.mark.parametrize("wrong", [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_a_dynamic_tree_of_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="expected at least 1, 1 and 0"):
        dynamic_tree_drafter(always(Q), *wrong)


# Heads, retrieval, sequences


def test_heads_make_a_product_that_is_prefix_closed():
    heads = [always(pmf(".5", ".3", ".2")), always(pmf(".1", ".2", ".7"))]
    draft = heads_drafter(heads, (2, 2)).propose(None, None, (0,), 9, None)
    assert [path_tokens(draft, node) for node in range(6)] == [(0,), (0, 2), (0, 1), (1,), (1, 2), (1, 1)]
    assert heads_drafter(heads, (2, 2)).propose(None, None, (0,), 1, None).tokens == (0, 1)
    with pytest.raises(ValueError, match=r"widths are \(2,\) for 2 heads, expected one of at least 1 for each"):
        heads_drafter(heads, (2,))


def test_continuations_follow_every_copy_of_the_longest_suffix():
    assert continuations((1, 2, 3, 1, 2), (), 4, 2) == [(3, 1)]
    assert continuations((1, 2), ((0, 1, 2, 5, 6), (1, 2, 7)), 4, 1) == [(5,), (7,)]
    assert continuations((9,), ((1, 2),), 4, 1) == []


def test_retrieval_keeps_the_most_frequent_prefixes():
    texts = ((1, 5, 6), (1, 5, 7), (1, 4, 4))
    drafter = retrieval_drafter(texts, longest=1, depth=2, nodes=3)
    assert drafter.propose(None, None, (1,), 9, None) == Draft((5, 4, 6), (-1, -1, 0), (None,) * 3)
    with pytest.raises(ValueError, match="expected at least 1, 1 and 0"):
        retrieval_drafter((), 0, 1, 1)


def test_sequences_stand_level_by_level():
    draft = sequences_drafter((always(P), always(Q)), 2).propose(Tape(0), None, (0,), 9, None)
    assert draft.parents == (-1, -1, 0, 1)
    assert [pmf is P for pmf in draft.pmfs] == [True, False, True, False]
    with pytest.raises(ValueError, match="depth is -1, expected an integer >= 0"):
        sequences_drafter((always(P),), -1)
    with pytest.raises(ValueError, match="there are no draft models"):
        sequences_drafter((), 1)


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
