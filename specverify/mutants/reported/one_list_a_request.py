"""A flat array of probabilities is read as one token for each request, so all tokens of a round get the first list."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.reporting import Top, most_probable
from specverify.mutants.serving.request import ExactPmf


def of_first_row(rows: Sequence[ExactPmf], index: int, count: int) -> Top:
    """Return the most probable tokens of the round's first row."""
    return most_probable(rows, 0, count)


MUTANT = in_situation(
    "reports",
    "one-list-a-request",
    "the most probable of one row for all",
    category="O",
    citation="text-generation-inference PR #1497 (43393451)",
    killed_by="scores_match",
    most_probable=of_first_row,
)
