"""Dynamic draft trees (EAGLE-2, arXiv 2406.16858): expand the most probable nodes, keep the best of all.

A node's score is the product of q along its path. Expansion: at every level the ``width`` best nodes get their
``width`` most probable children. Reranking: of all nodes, the ``nodes`` best are kept. A child never scores more than
its parent, and ties go to the shallower node, then to the one found first. So the kept nodes form a tree.

Nothing is drawn, so every token is a point mass and must be verified as one. If sampled nodes were pruned by their own
probability, the output would be biased.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..pmf import top_tokens
from ..types import Drafter, LanguageModel, Tokens
from .text_paths import paths_drafter


class _Node(NamedTuple):
    path: Tokens
    score: Any


def dynamic_tree_drafter(draft: LanguageModel, width: int, depth: int, nodes: int) -> Drafter:
    """Return a drafter of trees of at most ``nodes`` tokens: those with the largest product of q along their path.

    The tree has ``depth`` levels, or gamma levels if the gamma with which a round calls the drafter is smaller. At each
    level the ``width`` best nodes get ``width`` children each. With ``depth`` 0 nothing is drafted. Raises
    ``ValueError`` unless ``width`` and ``nodes`` are at least 1 and ``depth`` is at least 0.
    """
    if width < 1 or nodes < 1 or depth < 0:
        raise ValueError(f"width is {width}, nodes {nodes}, depth {depth}, expected at least 1, 1 and 0")

    def paths(prefix: Tokens, gamma: int) -> list[Tokens]:
        grown: list[_Node] = []
        level = [_Node((), 1)]
        for _level in range(min(depth, gamma)):
            level = [child for node in _best(level, width) for child in _children(draft, prefix, node, width)]
            grown += level
        return [node.path for node in _best(grown, nodes)]

    return paths_drafter(paths)


def _children(draft: LanguageModel, prefix: Tokens, node: _Node, width: int) -> list[_Node]:
    q = draft(prefix + node.path)
    return [_Node((*node.path, token), node.score * q[token]) for token in top_tokens(q, width)]


def _best(nodes: list[_Node], count: int) -> list[_Node]:
    """Return the ``count`` nodes with the best scores; ties keep their order, which is level by level."""
    return sorted(nodes, key=lambda node: -node.score)[:count]
