"""The accepted count is clamped to the length of the convolution, and the same number picks the state."""

from __future__ import annotations

from specverify.mutants.serving.cache import checkpoint
from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def clamped(before: Tokens, states: tuple[Tokens, ...], drafts: int, accepted: int) -> Tokens:
    """Return the state after at most three accepted drafts."""
    return checkpoint(before, states, drafts, min(accepted, 3))


MUTANT = in_situation(
    "recurrent, four drafts",
    "checkpoint-clamped",
    "the checkpoint is at most the third",
    category="I",
    citation="xLLM PR #2247 (c8c229639)",
    checkpoint=clamped,
)
