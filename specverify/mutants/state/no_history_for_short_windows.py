"""A kernel that keeps no history is chosen for short windows, although a rejection will need it."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def of_long_ones(states: tuple[Tokens, ...], drafts: int) -> tuple[Tokens, ...]:
    """Return the last state in place of all of a window of two."""
    return states if len(states) > 2 else states[-1:] * len(states)


MUTANT = in_situation(
    "recurrent",
    "no-history-for-short-windows",
    "short windows record no history",
    category="I",
    citation="exllamav3 commit 95c97bf",
    recorded=of_long_ones,
)
