"""Siblings are drawn with replacement and declared without it."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, with_tree
from specverify.reference import Draws, Pmf, Site, Tokens
from specverify.reference.drafters.tree import Child, excluding


def pick(draws: Draws, q: Pmf, earlier: Tokens, width: int, site: Site) -> Child | None:
    """Draw from q, declare q without the earlier siblings."""
    left = excluding(q, earlier)
    return None if left is None else Child(draws.categorical(q, site), left)


MUTANT = planted(
    "rsd",
    "replacement-not-declared",
    "may draw a sibling twice, denies it",
    with_tree(pick=pick),
    category="J",
    citation="plausible",
    killed_by="draft_is_honest",
    examples=PAIR,
)
