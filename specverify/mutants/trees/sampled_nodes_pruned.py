"""Sampled nodes are pruned by their own probability: what is left was chosen by what was drawn."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, with_changed_tree
from specverify.reference import Draft, Pmf


def pruned(tree: Draft, _: Pmf) -> Draft:
    """Return a tree of one level without unlikely siblings."""
    rows = zip(*tree, strict=True)
    likely = [row for row in rows if row[2] is not None and row[2][row[0]] >= Fraction(1, 3)]
    tokens, parents, pmfs = zip(*likely, strict=True) if likely else ((), (), ())
    return Draft(tokens, parents, pmfs)


MUTANT = planted(
    "rsd",
    "sampled-nodes-pruned",
    "prunes what it drew by its probability",
    with_changed_tree(pruned),
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
