"""The layouts that code takes trees in: each holds the tree, in NumPy and in torch, and reads back as it was."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.kv_cache import tree_path
from reference.tree_layouts import (
    child_lists,
    conditional_pmfs,
    linked_siblings,
    path_candidates,
    path_indices,
    predicted_tokens,
)
from reference.trees import children, leaves, retrieve_indices

NODES = st.integers(1, 7)


@st.composite
def trees(draw, nodes=NODES):
    count = draw(nodes)
    return np.array([draw(st.integers(-1, node - 1)) for node in range(count)])


def libraries():
    """NumPy, and torch where it is installed: the reference does not need it."""
    made = [np.asarray]
    with suppress(ImportError):
        import torch

        made.append(torch.tensor)
    return made


@given(trees(), st.data())
def test_paths_hold_the_rows_and_the_tokens_from_the_root_to_every_leaf(parents, data):
    tokens = np.array([data.draw(st.integers(0, 9)) for _ in parents])
    for make in libraries():
        indices = path_indices(make(parents.tolist()))
        assert indices.tolist() == retrieve_indices(parents.tolist()).tolist()
        candidates = path_candidates(make(tokens.tolist()), indices, root=11, padding=12)
        assert type(candidates) is type(indices) is type(make([0]))
        found = {tuple(token for token in row if token != 12) for row in candidates.tolist()}
        assert found == {
            (11, *(int(tokens[node]) for node in tree_path(parents.tolist(), leaf)))
            for leaf in leaves(parents.tolist())
        }
        assert (candidates == 12).tolist() == (indices == -1).tolist()


def walked(links, row=0):
    """Return the rows below ``row`` as the links have them."""
    child, found = int(links.next_token[row]), []
    while child >= 0:
        found.append(child)
        child = int(links.next_sibling[child])
    return found


@given(trees())
def test_links_and_lists_hold_the_children_of_every_row_in_order(parents):
    expected = [[1 + child for child in children(parents.tolist(), (node,))] for node in range(-1, len(parents))]
    for make in libraries():
        links = linked_siblings(make(parents.tolist()))
        assert [walked(links, row) for row in range(1 + len(parents))] == expected
        assert links.index.tolist() == list(range(1 + len(parents)))
        assert child_lists(make(parents.tolist())) == expected


@given(st.integers(1, 5).flatmap(lambda nodes: st.lists(trees(st.just(nodes)), min_size=1, max_size=3)))
def test_links_of_a_batch_are_those_of_its_trees_with_rows_behind_each_other(batch):
    for make in libraries():
        together = linked_siblings(make(np.stack(batch).tolist()))
        for place, parents in enumerate(batch):
            alone = linked_siblings(parents)
            assert together.next_token[place].tolist() == alone.next_token.tolist()
            assert together.next_sibling[place].tolist() == alone.next_sibling.tolist()
        assert together.index.reshape(-1).tolist() == list(
            range(together.index.size if make is np.asarray else together.index.numel())
        )


def test_predicted_tokens_stand_at_the_places_of_the_accepted_rows():
    for make in libraries():
        predicts = make([7, -1, 4, 9, 9, 2])
        accepted = make([[0, 2, -1], [5, -1, -1]])
        assert predicted_tokens(predicts, accepted).tolist() == [[7, 4, -1], [2, -1, -1]]
        assert predicted_tokens(predicts, accepted[0]).tolist() == [7, 4, -1]


def test_a_sibling_is_drawn_from_q_without_the_earlier_ones():
    q = np.array([[0.5, 0.25, 0.25]] * 3 + [[0.2, 0.3, 0.5]] * 2)
    parents, tokens = np.array([-1, -1, -1, 0, 0]), np.array([0, 2, 1, 2, 0])
    expected = [[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 1, 0], [0.2, 0.3, 0.5], [0.4, 0.6, 0]]
    for make in libraries():
        found = conditional_pmfs(make(q.tolist()), make(parents.tolist()), make(tokens.tolist()))
        assert found.tolist() == pytest.approx(np.array(expected), rel=1e-6)
    nothing_left = conditional_pmfs(np.array([[1.0, 0.0]] * 2), np.array([-1, -1]), np.array([0, 0]))
    assert nothing_left.tolist() == [[1, 0], [0, 0]]


@given(trees(), st.integers(2, 4), st.data())
def test_conditional_pmfs_are_what_the_drafter_draws_from(parents, vocabulary, data):
    """Each sums to 1 and leaves out the earlier siblings, where these are different tokens and something is left."""
    tokens, taken = [], {}
    for parent in parents.tolist():
        free = sorted(set(range(vocabulary)) - taken.setdefault(parent, set())) or [0]
        tokens.append(data.draw(st.sampled_from(free)))
        taken[parent].add(tokens[-1])
    q = np.full((len(parents), vocabulary), 1 / vocabulary)
    for node, row in enumerate(conditional_pmfs(q, parents, np.array(tokens))):
        earlier = {tokens[other] for other in range(node) if parents[other] == parents[node]}
        assert set(np.flatnonzero(row)) == set(range(vocabulary)) - earlier
        assert row.sum() == pytest.approx(int(len(earlier) < vocabulary))
