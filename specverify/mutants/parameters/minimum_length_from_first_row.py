"""Every verify row takes the position of the round's first row, so the end of sequence is masked one draft too long."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def before_first_row(new: int, row: int, rounds: int) -> int:
    """Return the number of new tokens before the round."""
    return new


MUTANT = in_situation(
    "minimum length",
    "minimum-length-from-first-row",
    "all rows count as the round's first",
    category="F",
    citation="plausible: position-dependent processors at the round's first position",
    new_before=before_first_row,
)
