"""Ranks look their drafts up by themselves and find different ones."""

from __future__ import annotations

from collections.abc import Callable

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def first_match(rank: int) -> Callable[[Tokens, Tokens, int], Tokens] | None:
    """Return a lookup that takes the first occurrence instead of the last, on every rank but one."""
    return earliest if rank else None


def earliest(corpus: Tokens, tokens: Tokens, count: int) -> Tokens:
    """Return what followed the first occurrence of the last token."""
    found = corpus.index(tokens[-1]) + 1
    return corpus[found : found + count] if found < len(corpus) else ()


MUTANT = in_situation(
    "two ranks with lookup",
    "ranks-draft-alone",
    "each rank looks up drafts of its own",
    category="P",
    citation="vLLM issue #31154, PRs #31288, #31307",
    rank_lookup=first_match,
)
