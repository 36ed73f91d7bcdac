"""The length of the rollback has one subtracted too many, so one rejected token stays in front of the next."""

from __future__ import annotations

from specverify.mutants.serving.cache import fed_last
from specverify.mutants.serving.planted import in_situation


def one_more(known: int, accepted: int, written: int, batch: int) -> int:
    """Return one entry more than is accepted, if there is one."""
    return min(known + accepted + 1, written)


MUTANT = in_situation(
    "one request",
    "one-rejected-stays",
    "one rejected draft stays in the cache",
    category="H",
    citation="MLC-LLM issue #2167, PR #2184 (d43e10e6)",
    killed_by="cache_equals_prefill",
    kept=one_more,
    fed_next=fed_last,
)
