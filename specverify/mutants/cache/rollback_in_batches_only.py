"""The rollback stands in the branch for batches, and a batch of one goes the other way."""

from __future__ import annotations

from specverify.mutants.serving.cache import fed_last
from specverify.mutants.serving.planted import in_situation


def if_several(known: int, accepted: int, written: int, batch: int) -> int:
    """Return what is accepted in a batch of several, all that was written in a batch of one."""
    return known + accepted if batch > 1 else written


MUTANT = in_situation(
    "one request",
    "rollback-in-batches-only",
    "a batch of one is not rolled back",
    category="H",
    citation="lucidrains/speculative-decoding issue #3, commits 3194f53, becf35d",
    kept=if_several,
    fed_next=fed_last,
)
