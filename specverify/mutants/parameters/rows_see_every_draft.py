"""Processors run once over all rows, and are shown the whole window at each of them, drafts behind the row included."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.reference import Tokens


def with_all_drafts(history: Tokens, drafts: Tokens, row: int) -> Tokens:
    """Return the history and every draft."""
    return history + drafts


MUTANT = in_situation(
    "penalties",
    "rows-see-every-draft",
    "every row is shown all drafts",
    category="F",
    citation="plausible: one prefix for all rows of a round",
    killed_by="processors_see_their_prefix",
    row_prefix=with_all_drafts,
)
