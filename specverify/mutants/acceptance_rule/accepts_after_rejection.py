"""Accepted drafts are counted over the whole mask instead of its leading run: a match after a miss still counts."""

from __future__ import annotations

from reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Task,
    Tokens,
    Verified,
    argmax,
    chain_decoder,
    constant,
    model_drafter,
)
from reference.models import draft_model
from specverify.mutants.mutant import planted


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Greedy match with a sum where a leading run is meant."""
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens) + 1)]
    accepted = sum(argmax(row) == token for row, token in zip(rows, draft.tokens, strict=False))
    return Verified((*draft.tokens[:accepted], argmax(rows[accepted])), accepted)


def build(task: Task, gamma: int = 4) -> Decoder:
    """Greedy speculation with the wrong count."""
    return chain_decoder(task, model_drafter(draft_model(task)), constant(gamma), verify)


MUTANT = planted(
    "greedy-speculation",
    "accepts-after-rejection",
    "counts matches behind a miss",
    build,
    category="A",
    citation="lucidrains/speculative-decoding commit a536030; plausible elsewhere",
    killed_by="greedy_is_argmax",
)
