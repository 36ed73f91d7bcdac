"""Drafting and verification share one cache variable: what the drafter computed stands where the target's should."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.cache import CacheMemory, written
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import in_situation


def overwritten(memory: CacheMemory, places: Sequence[int], drafted: Sequence[Entry]) -> CacheMemory:
    """Return the memory with the drafter's entries in the target's places."""
    count = min(len(places), len(drafted))
    return written(memory, places[:count], drafted[:count])


MUTANT = in_situation(
    "one request",
    "draft-writes-target-cache",
    "the draft writes the target's cache",
    category="H",
    citation="lucidrains/speculative-decoding commit 2ac580e",
    after_drafting=overwritten,
)
