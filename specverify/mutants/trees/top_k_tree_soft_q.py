"""A top-k tree is verified with the soft q, as if its nodes had been drawn."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, with_tree
from specverify.reference import Draws, Pmf, Site, Tokens
from specverify.reference.drafters.tree import Child, most_likely


def pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Take the most probable token and say that it was drawn."""
    child = most_likely(draws, q, earlier, width, site)
    return None if child is None else Child(child.token, q)


MUTANT = planted(
    "candidate-set",
    "top-k-tree-soft-q",
    "divides by q for tokens that were not drawn",
    with_tree(pick=pick),
    category="B",
    citation="EAGLE issues #221, #110 (disputed there)",
    killed_by="law_is_target",
    examples=PAIR,
)
