"""Trees of any shape: topology, masks, positions, path tables, what is gathered, how shapes are built and chosen."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rational import P, Q, always, pmf

from reference import Draft, Task, argmax, chain, chain_decoder, constant, generate, model_drafter
from reference.algorithms import eagle_2
from reference.drafters.dynamic_tree import dynamic_tree_drafter
from reference.drafters.heads import heads_drafter
from reference.drafters.retrieval import continuations, retrieval_drafter
from reference.drafters.sequences import sequences_drafter
from reference.drafters.sequoia_tree import best_budget, sequoia_tree, tree_value
from reference.kv_cache import keep_path, tree_depths, tree_mask, tree_path
from reference.tree_rounds import tree_decoder
from reference.trees import (
    accepted_indices,
    additive_mask,
    check_draft,
    children,
    leaves,
    merged,
    path_tokens,
    position_ids,
    regular_tree,
    retrieve_indices,
)
from reference.verifiers.speculative_sampling import speculative_sampling
from specverify.draws import Tape
from specverify.strategies import prompts, tasks

F = Fraction


@st.composite
def shapes(draw, most=9):
    count = draw(st.integers(0, most))
    return tuple(draw(st.integers(-1, node - 1)) for node in range(count))


def ancestors(parents, node):
    found = set()
    while node >= 0:
        found.add(node)
        node = parents[node]
    return found


# Topology


@given(shapes())
def test_every_node_is_the_child_of_its_parent_alone(parents):
    assert sorted(node for above in range(-1, len(parents)) for node in children(parents, (above,))) == [
        *range(len(parents))
    ]
    assert all(children(parents, (leaf,)) == () for leaf in leaves(parents))


@given(shapes())
def test_a_path_grows_by_one_node_per_level(parents):
    for node, depth in enumerate(tree_depths(parents)):
        path = tree_path(parents, node)
        assert set(path) == ancestors(parents, node)
        assert [tree_depths(parents)[on_path] for on_path in path] == [*range(depth + 1)]


def test_a_regular_tree_has_its_branching_at_every_level():
    assert regular_tree(()) == ()
    assert regular_tree((1, 1, 1)) == chain((5, 6, 7), (None,) * 3).parents
    assert regular_tree((2, 3)) == (-1, -1, 0, 0, 0, 1, 1, 1)


@pytest.mark.parametrize("branching", [(0,), (2, -1), (True,), (1.5,)])
def test_a_branching_that_counts_nothing_is_refused(branching):
    with pytest.raises(ValueError, match="expected integers >= 1, one per level"):
        regular_tree(branching)


def test_what_is_not_a_tree_is_refused():
    with pytest.raises(ValueError, match="node 0 has parent 0, expected an earlier node"):
        check_draft(Draft((1,), (0,), (None,)))
    with pytest.raises(
        ValueError, match=r"the draft has \(2, 1, 2\) tokens, parents and pmfs, expected as many of each"
    ):
        check_draft(Draft((1, 2), (-1,), (None, None)))


@given(st.lists(st.lists(st.integers(0, 2), max_size=4).map(tuple), max_size=5))
def test_a_merged_tree_has_one_node_per_prefix(paths):
    tree = merged(paths)
    draft = check_draft(Draft(*tree, (None,) * len(tree.tokens)))
    spelled = [path_tokens(draft, node) for node in range(len(tree.tokens))]
    assert len(set(spelled)) == len(spelled)
    assert set(spelled) == {path[:length] for path in paths for length in range(1, len(path) + 1)}


# Rows, columns, positions


@given(shapes(), st.integers(1, 4))
def test_a_row_sees_the_known_tokens_its_ancestors_and_itself(parents, known):
    mask, added = tree_mask(parents, known), additive_mask(parents, known, np.float32)
    assert added.shape == (1, 1, *mask.shape)
    assert added.dtype == np.float32
    assert ((added[0, 0] == 0) == mask).all()
    assert np.isfinite(added).all()
    for node in range(len(parents)):
        assert set(np.flatnonzero(mask[1 + node])) == {
            *range(known),
            *(known + above for above in ancestors(parents, node)),
        }
        assert mask[1 + node].sum() == position_ids(parents, known)[1 + node] + 1


@given(shapes(), st.integers(1, 4))
def test_siblings_share_a_position_and_a_child_follows_its_parent(parents, known):
    positions = position_ids(parents, known)
    assert positions[0] == known - 1
    assert all(positions[1 + node] == positions[1 + parent] + 1 for node, parent in enumerate(parents))


@given(shapes())
def test_the_path_table_holds_every_leaf_once_and_pads_with_no_row(parents):
    table = retrieve_indices(parents)
    assert (table[:, 0] == 0).all()
    rows = [tuple(row[row >= 0]) for row in table]
    assert [row[-1] - 1 for row in rows] == (list(leaves(parents)) or [-1])
    assert all(tuple(node - 1 for node in row[1:]) == tree_path(parents, row[-1] - 1) for row in rows)
    assert set(table.ravel()) - {-1} == set(range(1 + len(parents)))
    assert all((row[len(path) :] == -1).all() for row, path in zip(table, rows, strict=True))


@given(shapes(), st.integers(1, 4), st.data())
def test_gathering_keeps_the_rows_of_the_path_in_order(parents, known, data):
    node = data.draw(st.integers(-1, len(parents) - 1))
    kept = accepted_indices(parents, known, node)
    entries = np.arange(known + len(parents), dtype=float)[None, None, :, None]
    gathered = keep_path(entries, known, tree_path(parents, node)).ravel()
    assert gathered.tolist() == kept.tolist() == sorted(kept.tolist())
    assert len(kept) == position_ids(parents, known)[1 + node] + 1


# Rounds


@given(tasks(3, 1, 6), prompts(3), st.integers(0, 99), st.integers(0, 3))
def test_a_chain_is_decoded_as_by_the_chain_decoder(task, prompt, seed, gamma):
    """One tape, one path: the same texts, drafts and counts."""
    drafter = model_drafter(task.draft)
    limited = drafter._replace(
        propose=lambda draws, s, x, depth, stop: drafter.propose(draws, s, x, min(gamma, depth), stop)
    )
    one = generate(chain_decoder(task, drafter, constant(gamma), speculative_sampling), prompt, Tape(seed))
    other = generate(tree_decoder(task, limited, speculative_sampling), prompt, Tape(seed))
    assert one == other


@given(tasks(3, 2, 6), prompts(3), st.integers(0, 99))
def test_a_tree_is_no_deeper_than_the_horizon_allows(task, prompt, seed):
    decoder, draws = eagle_2.build(task, width=2, depth=9, nodes=30), Tape(seed)
    state = decoder.init(prompt)
    while state.remaining:
        depths = tree_depths(decoder.propose(draws, state).parents)
        assert max(depths, default=-1) + 1 <= state.remaining - 1
        state, _ = decoder.step(draws, state)


def test_a_round_shows_the_accepted_path_first():
    task = Task(always(pmf(0, 1, 0)), always(pmf(".5", ".3", ".2")), horizon=3)
    decoder = eagle_2.build(task, width=2, depth=2, nodes=6)
    _, done = decoder.step(Tape(0), decoder.init((0,)))
    assert done.tokens == (1, 1, 1)
    assert (done.draft[:2], sorted(done.draft), done.accepted, done.reached) == ((1, 1), [0, 0, 0, 1, 1, 1], 2, 2)


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
