"""A schedule over a batch that scores a slot by the probability of its own draft: likely drafts are verified more."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference.algorithms import scheduled_by_draft

MUTANT = planted(
    "scheduled-verification",
    "confidence-sees-its-draft",
    "schedules slots of a batch by q of the very draft",
    scheduled_by_draft.build,
    category="L",
    citation="plausible: DSpark's schedule with q(d) for its confidence head",
    killed_by="rows_are_independent",
    batch=scheduled_by_draft.batch,
)
