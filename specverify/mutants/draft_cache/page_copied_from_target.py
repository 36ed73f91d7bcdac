"""The loop that copies a partly used page goes over both caches and always reads from the target's."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache, draft_reused
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import in_drafting


def last_of_target(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return the drafter's entries but for the last, which is the target's."""
    own = draft_reused(cache, target, count)
    return own._replace(entries=own.entries[:-1] + target[max(own.seen - 1, 0) : own.seen])


MUTANT = in_drafting(
    "page-copied-from-target",
    "a shared page is copied from the target",
    warm=True,
    citation="exllamav2 commit 4587220",
    draft_reused=last_of_target,
)
