"""Blocks are counted without the drafts, so the last of them leaves no entry; it is missed when it is accepted."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def but_the_last(fed: int, drafts: int) -> int:
    """Return one entry fewer than tokens if there are drafts."""
    return fed - 1 if drafts else fed


MUTANT = in_situation(
    "one request",
    "last-draft-never-written",
    "the last draft's entry is never written",
    category="H",
    citation="exllamav2 commit 05807d1",
    killed_by="cache_equals_prefill",
    written_count=but_the_last,
)
