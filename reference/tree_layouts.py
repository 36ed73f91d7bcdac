"""Trees of drafts in the layouts that other projects use: paths, linked siblings, child lists, pmfs.

A tree is ``parents`` as in ``trees``: node j is a child of node ``parents[j] < j``, or of the root for -1, and siblings
are in the order in which they were drawn. Arrays with a row for each node have the root's row first: row 0 is the root,
row 1 + j is node j. These functions take arrays of NumPy and of torch, and return arrays of the same library.

Paths (EAGLE, arXiv 2401.15077; Medusa, arXiv 2401.10774; TensorRT-LLM): ``path_indices`` ``[paths, 1 + depth]`` has the
rows of each path, ``path_candidates`` the tokens, and ``p[indices]`` ``[paths, 1 + depth, vocabulary]`` the pmfs. A
path that is shorter than ``depth`` is padded with -1, which in ``p[indices]`` selects the last row of p, as in their
code.

    indices = path_indices(parents)
    candidates = path_candidates(tokens, indices)
    best, length, pmf = evaluate_posterior(p[indices].log(), candidates, ...)
    return candidates[best, 1 : 1 + length], pmf

Linked siblings (SGLang's tree kernels): ``linked_siblings`` for the arguments, ``predicted_tokens`` for the result.
Lists of children (Sequoia, arXiv 2402.12374): ``child_lists``. Siblings without replacement: ``conditional_pmfs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from array_api_compat import array_namespace

from .drafters.tree import excluding
from .trees import children, retrieve_indices


class LinkedSiblings(NamedTuple):
    """A tree of drafts, or a batch of trees, in three int64 arrays ``[1 + nodes]`` or ``[B, 1 + nodes]``.

    Entry 0 of an array belongs to the root and entry 1 + j to node j. Children and siblings are given by such numbers
    of their own tree.
    """

    index: Any
    """Index of each tree row in the concatenation of all trees of the batch: ``retrive_index``."""
    next_token: Any
    """Index of the first child of each row, -1 if it has none: ``retrive_next_token``."""
    next_sibling: Any
    """Index of the next sibling of each row, -1 if it has none: ``retrive_next_sibling``."""


def path_indices(parents: Any) -> Any:
    """Return the row numbers along every path of a tree, from the root to a leaf: an array ``[paths, 1 + depth]``.

    Row 0 is the root and row 1 + j is node j, as in ``trees.retrieve_indices``. ``parents`` ``[nodes]`` is the tree, an
    array of NumPy or torch; the result is an array of the same library.
    """
    return _like(parents, retrieve_indices(parents.tolist()).tolist())


def path_candidates(tokens: Any, indices: Any, root: int = 0, padding: int = -1) -> Any:
    """Return the tokens on every path, ``[paths, 1 + depth]`` int64.

    ``tokens`` ``[nodes]`` are the drafts, ``indices`` is the result of ``path_indices``. Column 0 has the token
    ``root``, which no rule reads. ``padding`` is written after the end of a path: -1 in EAGLE, 0 in Medusa.
    """
    known = [root, *tokens.tolist()]
    return _like(tokens, [[known[row] if row >= 0 else padding for row in path] for path in indices.tolist()])


def linked_siblings(parents: Any) -> LinkedSiblings:
    """Return first child and next sibling of each row of a tree ``parents`` ``[nodes]``, or of trees ``[B, nodes]``."""
    batch = parents.tolist() if parents.ndim == 2 else [parents.tolist()]
    rows = 1 + parents.shape[-1]
    links = [_links(tree) for tree in batch]
    made = (
        [list(range(row * rows, (row + 1) * rows)) for row in range(len(batch))],
        [first for first, _ in links],
        [following for _, following in links],
    )
    return LinkedSiblings(*(_like(parents, table if parents.ndim == 2 else table[0]) for table in made))


def predicted_tokens(predicts: Any, accept_index: Any) -> Any:
    """Return the emitted tokens, padded with -1, from the results of SGLang's kernels.

    ``predicts`` ``[B (1 + nodes)]`` has the token after each accepted row at its position. ``accept_index`` ``[B,
    steps]`` or ``[steps]`` has these positions in order, and -1 after the end.
    """
    flat = predicts.reshape(-1)
    xp = array_namespace(flat)
    return xp.where(accept_index < 0, -1, flat[xp.where(accept_index < 0, 0, accept_index)])


def child_lists(parents: Any) -> list[list[int]]:
    """Return, for every row, the list of the rows of its children; the first list is the root's.

    ``parents`` ``[nodes]`` is the tree. Sequoia calls these lists successors.
    """
    return _child_lists(parents.tolist())


def conditional_pmfs(q: Any, parents: Any, tokens: Any) -> Any:
    """Return the pmf of each node given its earlier siblings, ``[nodes, V]``, in the type of ``q``.

    It is the node's row of ``q`` ``[nodes, V]`` without the tokens of earlier siblings, normalised (RSD, arXiv
    2402.14160), or 0 if no mass remains. ``q`` has the drafter's row after each node's parent, ``parents`` is the tree,
    and ``tokens`` ``[nodes]`` has the drafts.
    """
    shape, drawn = parents.tolist(), tokens.tolist()
    rows = []
    for node, parent in enumerate(shape):
        left = excluding(q[node], tuple(drawn[other] for other in range(node) if shape[other] == parent))
        rows.append(q[node] * 0 if left is None else left)
    return array_namespace(q).stack(rows)


def _links(tree: Sequence[int]) -> tuple[list[int], list[int]]:
    first, following = [-1] * (1 + len(tree)), [-1] * (1 + len(tree))
    for parent, below in enumerate(_child_lists(tree)):
        if below:
            first[parent] = below[0]
        for row, after in pairwise(below):
            following[row] = after
    return first, following


def _child_lists(tree: Sequence[int]) -> list[list[int]]:
    return [[1 + child for child in children(tree, (node,))] for node in range(-1, len(tree))]


def _like(array: Any, table: Any) -> Any:
    xp = array_namespace(array)
    return xp.asarray(table, dtype=xp.int64, device=array.device)
