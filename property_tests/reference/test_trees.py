"""Trees of any shape: topology, masks, positions, path tables, what is gathered, and the rounds of a tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import Draft, Task, chain, chain_decoder, constant, generate, model_drafter
from reference.algorithms import eagle_2
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
from specverify.laws.draws import Tape
from specverify.laws.model_strategies import prompts, tasks
from test_support.laws.rational import always, pmf


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
    assert sorted(row[-1] - 1 for row in rows) == (list(leaves(parents)) or [-1])
    assert all(tuple(node - 1 for node in row[1:]) == tree_path(parents, row[-1] - 1) for row in rows)
    assert set(table.ravel()) - {-1} == set(range(1 + len(parents)))
    assert all((row[len(path) :] == -1).all() for row, path in zip(table, rows, strict=True))


@given(shapes())
def test_the_path_table_meets_siblings_in_the_order_they_were_drawn(parents):
    """Also where an earlier sibling has children and a later one has none, so that its leaf has the smaller number."""
    met = list(dict.fromkeys(row - 1 for path in retrieve_indices(parents).tolist() for row in path if row > 0))
    for node in range(-1, len(parents)):
        assert [child for child in met if parents[child] == node] == list(children(parents, (node,)))


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
