"""Rows that only fill up the pass are copied as if they belonged to somebody, over the first request's entries."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def first(row: int) -> int | None:
    """Return the first slots of the memory."""
    return row


MUTANT = in_situation(
    "padding rows",
    "padding-rows-written",
    "padding rows are written like real ones",
    category="L",
    citation="TensorRT-LLM PR #15708",
    padding_slot=first,
)
