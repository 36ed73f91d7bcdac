"""Parallel heads (Medusa, arXiv 2401.10774): head i drafts the token i + 1 positions ahead from the text so far alone.

Its drafts do not depend on the tokens between, so the tree is the Cartesian product of the heads' most probable tokens:
all nodes of one depth have the same children.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from ..pmf import argmax, top_tokens
from ..types import Drafter, LanguageModel, Pmf, Tokens
from .text_paths import paths_drafter


def heads_drafter(heads: Sequence[LanguageModel], widths: Sequence[int]) -> Drafter:
    """Return a drafter of trees in which the ``widths[i]`` best tokens of ``heads[i]`` are the children of a node.

    i is the level of the node; level 0 is the root. Each round calls the drafter with a gamma; levels below level gamma
    are left out. Raises ``ValueError`` for a width below 1, or unless there is one width for each head.
    """
    if len(heads) != len(widths) or any(width < 1 for width in widths):
        raise ValueError(f"widths are {tuple(widths)} for {len(heads)} heads, expected one of at least 1 for each")

    def paths(prefix: Tokens, gamma: int) -> Iterable[Tokens]:
        layers = list(zip(heads, widths, strict=True))[:gamma]
        return product(*(top_tokens(head(prefix), width) for head, width in layers))

    return paths_drafter(paths)


def stand_in_head(draft: LanguageModel, ahead: int) -> LanguageModel:
    """Return a model that stands for a trained head.

    The model appends the argmax of q to the text ``ahead`` times, and returns q after the result. q is ``draft``.
    """

    def head(tokens: Tokens) -> Pmf:
        for _ in range(ahead):
            tokens = (*tokens, argmax(draft(tokens)))
        return draft(tokens)

    return head
