"""On a rejection the drafter's cache is trimmed by an entry that had not been written: acceptance decays."""

from __future__ import annotations

from specverify.mutants.serving.drafting import DraftCache, draft_kept
from specverify.mutants.serving.planted import in_drafting


def one_fewer(cache: DraftCache, known: int, drafts: int, accepted: int) -> DraftCache:
    """Return the cache without its last good entry if a draft was rejected."""
    kept = draft_kept(cache, known, drafts, accepted)
    return kept._replace(entries=kept.entries[:-1]) if accepted < drafts else kept


MUTANT = in_drafting(
    "trimmed-though-nothing-written",
    "a rejection trims what was accepted",
    citation="mlx-lm commit e6ae82d3 (branch)",
    draft_kept=one_fewer,
)
