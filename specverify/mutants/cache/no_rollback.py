"""Keys and values are carried over from round to round without a rollback to the accepted prefix."""

from __future__ import annotations

from specverify.mutants.serving.cache import fed_last
from specverify.mutants.serving.planted import in_situation


def everything(known: int, accepted: int, written: int, batch: int) -> int:
    """Return all that was written."""
    return written


MUTANT = in_situation(
    "one request",
    "no-rollback",
    "the cache is never rolled back",
    category="H",
    citation="feifeibear/LLMSpeculativeSampling commit 8043c01",
    killed_by="cache_equals_prefill",
    kept=everything,
    fed_next=fed_last,
)
