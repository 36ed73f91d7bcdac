"""The drafter goes on with the entries of drafts that were rejected."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache, draft_kept
from specverify.mutants.serving.planted import in_drafting


def everything(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return all entries under the right length."""
    return DraftCache(cache.entries, draft_kept(cache, known, drafts, accepted).seen)


MUTANT = in_drafting(
    "draft-cache-not-cropped",
    "the drafter keeps its rejected tokens",
    citation="transformers issue #32366, PR #32370",
    draft_kept=everything,
)
