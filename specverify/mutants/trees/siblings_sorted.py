"""Sampled siblings are verified in the order of their probability instead of the order they were drawn in."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, with_changed_tree
from specverify.reference import Draft, Pmf
from specverify.reference.drafters.tree import excluding


def by_probability(tree: Draft, q: Pmf) -> Draft:
    """Return a tree of one level, sorted."""
    best = tuple(sorted(tree.tokens, key=lambda token: -q[token]))
    return Draft(best, tree.parents, tuple(excluding(q, best[:k]) for k in range(len(best))))


MUTANT = planted(
    "rsd",
    "siblings-sorted",
    "tries likely siblings first",
    with_changed_tree(by_probability),
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
