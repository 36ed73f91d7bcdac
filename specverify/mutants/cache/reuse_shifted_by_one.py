"""The offset behind a reused prefix is not shifted by one, so the token that follows the prefix is never fed."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def one_further(held: int, boundary: int, recurrent: bool) -> int:
    """Return one entry more than the pages hold."""
    return boundary + 1 if boundary else 0


MUTANT = in_situation(
    "conversation",
    "reuse-shifted-by-one",
    "a reused prefix counts one too many",
    category="H",
    citation="MLC-LLM PR #2664 (8290a970)",
    reused=one_further,
)
