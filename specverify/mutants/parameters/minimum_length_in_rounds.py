"""The minimum length counts steps of the engine instead of tokens: end-of-sequence tokens stay masked for too long."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def rounds_before(new: int, row: int, rounds: int) -> int:
    """Return the number of rounds for the number of tokens."""
    return rounds


MUTANT = in_situation(
    "minimum length",
    "minimum-length-in-rounds",
    "the minimum length counts rounds",
    category="F",
    citation="SGLang PR #33643",
    new_before=rounds_before,
)
