"""The tree is verified under a causal mask: a node sees its siblings as if they were before it in the text."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, texts_of_rows, with_tree
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified
from specverify.reference.verifiers.recursive_rejection import recursive_rejection


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection under a causal mask."""
    texts = texts_of_rows(prefix, draft)
    return recursive_rejection(draws, lambda text: target(prefix + draft.tokens[: texts.index(text)]), prefix, draft)


MUTANT = planted(
    "rsd",
    "mask-is-causal",
    "lets nodes see their siblings",
    with_tree(verify),
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
