"""When every draft is accepted, the history gets the round's first token once more in front of the extra one."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def repeating(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history with the first token of a fully accepted round twice."""
    again = new[:1] if drafts and len(new) == reserved else ()
    return history[: len(history) - reserved] + again + new


MUTANT = in_situation(
    "penalties",
    "first-token-repeated-in-history",
    "a full round repeats its first token",
    category="F",
    citation="mlx-lm commit 79441dc2 (branch), first of three errors",
    killed_by="processors_see_their_prefix",
    resolved=repeating,
)
