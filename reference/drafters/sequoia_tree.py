"""The best tree for a number of nodes, by dynamic programming (Sequoia, arXiv 2402.12374, tree construction).

``acceptance[k]`` is the probability that the k-th child of an accepted node, in the order of verification, is the
accepted child; its earlier siblings are then rejected. These numbers are assumed to be the same at every node. The
value of a tree is the mean number of tokens that it emits: the sum over all nodes of the product of the numbers on
their paths. The root counts 1, the token that every round emits. Let T(m, d) be the best value of m nodes, root
included, d levels deep. Then

    T(m, d) = 1 + max over m_1 + m_2 + ... <= m - 1 of  sum_k acceptance[k] T(m_k, d - 1)

where a k-th child needs a (k-1)-th. If the numbers do not increase with k, adding the best leaf again and again is
optimal too; if they do, it is not. Depth counts drafted levels; Sequoia's released search counts the root as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..types import Tokens


class PlannedTree(NamedTuple):
    """The shape of a tree, with children in the order of verification.

    ``parents`` has the parent of each node (-1: the root), and ``value`` is the mean number of tokens that a round with
    this tree emits.
    """

    parents: Tokens
    value: Any


class Budget(NamedTuple):
    """The tree that emits the most tokens per unit of time for given costs, and its size, depth and cost per token."""

    size: int
    depth: int
    cost_per_token: Any
    tree: PlannedTree


Subtrees = tuple[Any, ...]
"""The children of a node, each represented by the tuple of its own children; a leaf is ()."""


def sequoia_tree(acceptance: Sequence[Any], size: int, depth: int) -> PlannedTree:
    """Return the best tree of at most ``size`` nodes, root included, and ``depth`` levels below the root.

    ``acceptance[k]`` is the probability that the k-th child is the accepted one. Raises ``ValueError`` for a size below
    1, a negative depth or a negative probability.
    """
    if size < 1 or depth < 0:
        raise ValueError(f"size is {size} and depth {depth}, expected at least 1 node (the root) and 0 levels")
    if any(chance < 0 for chance in acceptance):
        raise ValueError(f"positional acceptance is {tuple(acceptance)}, expected numbers >= 0")

    @cache
    def tree(nodes: int, levels: int) -> tuple[Any, Subtrees]:
        value, below = forest(nodes - 1, 0, levels) if levels else (0, ())
        return 1 + value, below

    @cache
    def forest(nodes: int, k: int, levels: int) -> tuple[Any, Subtrees]:
        best: tuple[Any, Subtrees] = (0, ())
        if k < len(acceptance):
            for first in range(1, nodes + 1):
                value, below = tree(first, levels - 1)
                later, others = forest(nodes - first, k + 1, levels)
                if acceptance[k] * value + later > best[0]:
                    best = (acceptance[k] * value + later, (below, *others))
        return best

    value, below = tree(size, depth)
    return PlannedTree(_level_by_level(below), value)


def tree_value(acceptance: Sequence[Any], parents: Sequence[int]) -> Any:
    """Return the mean number of tokens that a tree emits: 1 plus the sum over nodes of the products along their paths.

    The factor of a node is ``acceptance[k]``, with its rank k among its siblings. ``parents`` has the parent of each
    node, -1 for the root.
    """
    reached: list[Any] = []
    for node, parent in enumerate(parents):
        rank = list(parents[:node]).count(parent)
        chance = acceptance[rank] if rank < len(acceptance) else 0
        reached.append(chance * (reached[parent] if parent >= 0 else 1))
    return 1 + sum(reached)


def best_budget(acceptance: Sequence[Any], verify_cost: Mapping[int, Any], draft_cost: Any, deepest: int) -> Budget:
    """Return the size and depth with the least time per token, ``(depth draft_cost + verify_cost[size]) / value``.

    ``acceptance`` is that of ``sequoia_tree``. ``verify_cost`` maps each possible size to the time of a verifying pass,
    ``draft_cost`` is the time of a drafted level, ``deepest`` the largest depth. ``value`` is the expected number of
    tokens per pass with this size and depth. Ties go to fewer nodes, then to fewer levels.
    """
    result = [
        Budget(size, depth, (depth * draft_cost + cost) / planned.value, planned)
        for size, cost in sorted(verify_cost.items())
        for depth in range(deepest + 1)
        for planned in (sequoia_tree(acceptance, size, depth),)
    ]
    return min(result, key=lambda item: (item.cost_per_token, item.size, item.depth))


def _level_by_level(below: Subtrees) -> Tokens:
    parents: list[int] = []
    level = [(-1, child) for child in below]
    while level:
        following = []
        for parent, node in level:
            parents.append(parent)
            following += [(len(parents) - 1, child) for child in node]
        level = following
    return tuple(parents)
