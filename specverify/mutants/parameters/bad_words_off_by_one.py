"""Drafts are read with an offset of one, as if position 0 were the last committed token: phrases in drafts pass."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.processors import blocked
from specverify.reference import Tokens


def one_back(words: tuple[Tokens, ...], prefix: Tokens, drafts: Tokens, row: int) -> frozenset[int]:
    """Return what would complete a phrase if the draft before the row were not there."""
    return blocked(words, prefix[:-1] if row else prefix, drafts, row)


MUTANT = in_situation(
    "bad words",
    "bad-words-off-by-one",
    "phrases are matched one token back",
    category="F",
    citation="vLLM PR #52311; vllm-ascend PR #14433 (744bdce6e7)",
    blocked=one_back,
)
