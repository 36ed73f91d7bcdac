"""Accepted drafts are counted over the whole mask instead of its leading run: a match after a miss still counts."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, argmax


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Greedy match with a sum where a leading run is meant."""
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens) + 1)]
    accepted = sum(argmax(row) == token for row, token in zip(rows, draft.tokens, strict=False))
    return Verified((*draft.tokens[:accepted], argmax(rows[accepted])), accepted)


MUTANT = planted(
    "greedy-speculation",
    "accepts-after-rejection",
    "counts matches behind a miss",
    with_parts("greedy-speculation", verifier=verify),
    category="A",
    citation="lucidrains/speculative-decoding commit a536030; plausible elsewhere",
    killed_by="greedy_is_argmax",
)
