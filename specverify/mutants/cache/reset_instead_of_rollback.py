"""After a rejection the cache is emptied instead of being taken back to its snapshot, and decoding goes on."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def emptied(pages: tuple[int, ...], free: tuple[int, ...], needed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return no pages if any is no longer needed."""
    return ((), free + pages) if needed < len(pages) else (pages, free)


MUTANT = in_situation(
    "one request",
    "reset-instead-of-rollback",
    "a rewind empties the cache",
    category="H",
    citation="paiml/aprender PR #2014",
    killed_by="cache_equals_prefill",
    trimmed=emptied,
)
