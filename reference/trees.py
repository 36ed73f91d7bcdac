"""Trees of drafts, of any shape: parents, attention masks, and the accepted path.

A tree is ``parents``: node j is a child of node ``parents[j] < j``, or of the last known token, its root, for -1.
Siblings are in the order in which they were drawn, which is the order in which they are verified. Depth is 0 for the
children of the root. The verifying pass (SpecInfer, arXiv 2305.09781, tree attention; Medusa, arXiv 2401.10774) feeds
the root and then the nodes: row 0 is the root, row 1 + j is node j, at the position of its depth. All arrays here are
NumPy; the functions for the cache are in ``kv_cache``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .kv_cache import tree_depths, tree_mask, tree_path
from .pmf import one_hot
from .types import Draft, Pmf, Tokens

ROOT: Tokens = (-1,)
"""The key of the root node, where a walk down the tree starts."""


def children(parents: Sequence[int], nodes: Sequence[int] = ROOT) -> tuple[int, ...]:
    """Return the children of all ``nodes`` together, in the order in which they were drawn.

    ``nodes`` are usually one node, or several with the same text, whose children are candidates for the same position.
    """
    return tuple(node for node, parent in enumerate(parents) if parent in nodes)


def leaves(parents: Sequence[int]) -> tuple[int, ...]:
    """Return the nodes without children, in order; ``parents`` has the parent of each node."""
    return tuple(node for node in range(len(parents)) if node not in parents)


def path_tokens(draft: Draft, node: int) -> Tokens:
    """Return the tokens of ``draft`` from a child of the root down to ``node``; none for -1."""
    return tuple(draft.tokens[on_path] for on_path in tree_path(draft.parents, node))


def child_pmf(draft: Draft, node: int, like: Pmf) -> Pmf:
    """Return the pmf from which the draft's ``node`` was drawn, ``[V]``.

    If the draft has None for a point mass there, the result is the one-hot array of the type of ``like``.
    """
    pmf = draft.pmfs[node]
    return one_hot(draft.tokens[node], like) if pmf is None else pmf


def check_draft(draft: Draft) -> Draft:
    """Return ``draft`` if it is a tree: one parent and one pmf for each token, and every parent an earlier node or -1.

    Raises ``ValueError`` in one sentence otherwise.
    """
    counts = (len(draft.tokens), len(draft.parents), len(draft.pmfs))
    if len(set(counts)) > 1:
        raise ValueError(f"the draft has {counts} tokens, parents and pmfs, expected as many of each")
    tree_depths(draft.parents)
    return draft


def regular_tree(branching: Sequence[int]) -> Tokens:
    """Return the parents, level by level, of a tree in which all nodes of a level have equally many children.

    The root has ``branching[0]`` children, each of these ``branching[1]``, and so on; ``(1,) * gamma`` is a chain.
    Raises ``ValueError`` for a count below 1.
    """
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 1 for count in branching):
        raise ValueError(f"branching is {tuple(branching)}, expected integers >= 1, one per level")
    parents: Tokens = ()
    level: Sequence[int] = ROOT
    for count in branching:
        before = len(parents)
        parents += tuple(node for node in level for _ in range(count))
        level = range(before, len(parents))
    return parents


class TokenTree(NamedTuple):
    """Tokens and their parents: a draft without its pmfs."""

    tokens: Tokens
    parents: Tokens


def merged(paths: Iterable[Tokens]) -> TokenTree:
    """Return the prefix tree of ``paths``, in which paths that begin alike share nodes: one node for each prefix.

    This is SpecInfer's merge of token trees (arXiv 2305.09781). Nodes stand in the order in which their prefixes first
    occur, parents before children.
    """
    nodes: dict[Tokens, int] = {}
    for path in paths:
        for length in range(1, len(path) + 1):
            nodes.setdefault(path[:length], len(nodes))
    return TokenTree(tuple(prefix[-1] for prefix in nodes), tuple(nodes.get(prefix[:-1], -1) for prefix in nodes))


def deterministic_draft(tree: TokenTree) -> Draft:
    """Return the tree as a deterministic draft, in which every token is a point mass."""
    return Draft(*tree, (None,) * len(tree.tokens))


def position_ids(parents: Sequence[int], known: int) -> Any:
    """Return the position of every row ``[1 + nodes]``, int64: ``known - 1`` for the root, then by depth.

    Siblings share a position, so the position differs from the row number.
    """
    return np.array([known - 1, *(known + depth for depth in tree_depths(parents))], dtype=np.int64)


def additive_mask(parents: Sequence[int], known: int, dtype: Any = np.float64) -> Any:
    """Return the additive attention mask ``[1, 1, 1 + nodes, known + nodes]``: 0 or the lowest finite number.

    The entries have the type ``dtype``. Rows and columns are as in ``kv_cache.tree_mask``, whose True is 0 here.
    """
    allowed = tree_mask(parents, known)
    return np.where(allowed, 0, np.finfo(dtype).min).astype(dtype)[None, None]


def retrieve_indices(parents: Sequence[int]) -> Any:
    """Return the rows of every path from the root to a leaf, ``[leaves, 1 + depth of the tree]``, int64.

    ``parents`` has the parent of each node. Column 0 is the root's row, 0. Paths are in depth-first order, siblings in
    the order in which they were drawn. Short paths are padded with -1, which is no row: mask before indexing. A tree
    without nodes has one path, the root.
    """
    paths = sorted((0, *(1 + node for node in tree_path(parents, leaf))) for leaf in leaves(parents)) or [(0,)]
    table = np.full((len(paths), max(map(len, paths))), -1, dtype=np.int64)
    for row, path in enumerate(paths):
        table[row, : len(path)] = path
    return table


def accepted_indices(parents: Sequence[int], known: int, node: int) -> Any:
    """Return the cache entries to keep if ``node`` is the last accepted one, int64: the known tokens, then its path.

    ``parents`` has the parent of each node. A ``node`` of -1 keeps only the known tokens. Gather these entries before
    cropping: a path need not be contiguous.
    """
    return np.array([*range(known), *(known + on_path for on_path in tree_path(parents, node))], dtype=np.int64)
