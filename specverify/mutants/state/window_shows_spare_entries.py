"""While drafts wait, the cache returns more entries than the mask announces, and the mask covers the oldest ones."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import in_situation


def first_columns(entries: Sequence[Entry], window: int, spare: int) -> Sequence[Entry]:
    """Return as many entries as the window has, from the first one that is held."""
    return entries[-window - spare :][:window] if window else entries


MUTANT = in_situation(
    "window",
    "window-shows-spare-entries",
    "the mask is that of older entries",
    category="I",
    citation="transformers PR #48280 (regression of #47447)",
    visible=first_columns,
)
