"""When a prefix is used again, the target's length is set back to it and the drafter's entries stay as they are."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache
from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.planted import in_drafting


def uncropped(cache: DraftCache, target: tuple[Entry, ...], count: int) -> DraftCache:
    """Return all of the drafter's entries under the length of the prefix."""
    return DraftCache(cache.entries, count)


MUTANT = in_drafting(
    "draft-not-rewound-on-reuse",
    "only the target is rewound to the prefix",
    warm=True,
    citation="exllamav2 commit d7a4ecd",
    draft_reused=uncropped,
)
