"""A node's position is its index in the flattened tree instead of its depth: right for a chain.

A table has no positions, so the text is that much longer in front.
"""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, texts_of_rows, with_tree
from specverify.reference import Draft, Draws, LanguageModel, Pmf, Tokens, Verified
from specverify.reference.verifiers.recursive_rejection import recursive_rejection


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection with the row of a later position."""
    texts = texts_of_rows(prefix, draft)

    def row(tokens: Tokens) -> Pmf:
        depth = len(tokens) - len(prefix)
        return target(prefix[:1] * (texts.index(tokens) - depth) + tokens)

    return recursive_rejection(draws, row, prefix, draft)


MUTANT = planted(
    "rsd",
    "position-by-index",
    "puts siblings at different positions",
    with_tree(verify),
    category="J",
    citation="mlxcel PR #1214",
    killed_by="law_is_target",
    examples=PAIR,
)
