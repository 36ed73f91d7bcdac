"""The processors of a draft step are shown the drafts without the newest one."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_drafting
from specverify.reference import Tokens


def without_last(history: Tokens, drafted: Tokens) -> Tokens:
    """Return the prefix without the last draft."""
    return history + drafted[:-1]


MUTANT = in_drafting(
    "draft-step-lacks-last-token",
    "the draft is not told what it just drew",
    penalised=True,
    citation="mlx-lm commit 79441dc2 (branch), second of three errors",
    draft_prefix=without_last,
)
