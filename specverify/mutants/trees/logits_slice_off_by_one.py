"""Tree verification reads a slice of the logits that begins one row off: a node is judged by its neighbour's row."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, texts_of_rows, with_tree
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified
from specverify.reference.verifiers.recursive_rejection import recursive_rejection


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection on logits without the root's row."""
    texts = texts_of_rows(prefix, draft)
    return recursive_rejection(draws, lambda text: target(texts[max(texts.index(text) - 1, 0)]), prefix, draft)


MUTANT = planted(
    "rsd",
    "logits-slice-off-by-one",
    "judges a node by the row before",
    with_tree(verify),
    category="J",
    citation="TensorRT-LLM PR #15098",
    killed_by="law_is_target",
    examples=PAIR,
)
