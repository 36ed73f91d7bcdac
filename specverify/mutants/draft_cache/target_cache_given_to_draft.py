"""A cache that was passed in is the target's, and is copied into the arguments of the drafter too."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import in_drafting


def of_target(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the target's entries."""
    return DraftCache(target[:count], count)


MUTANT = in_drafting(
    "target-cache-given-to-draft",
    "the drafter is handed the target's cache",
    warm=True,
    citation="transformers PR #31644",
    draft_reused=of_target,
)
