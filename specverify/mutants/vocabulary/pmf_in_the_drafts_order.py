"""Both vocabularies have one size, so the draft pmf is not rearranged, though the drafted token is."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ExactPmf


def unmapped(raw: ExactPmf, drawn: ExactPmf) -> ExactPmf:
    """Return the row over the drafter's ids."""
    return raw


MUTANT = in_situation(
    "draft in its own ids",
    "pmf-in-the-drafts-order",
    "q is left in the drafter's order",
    category="N",
    citation="rtp-llm commit 607ec2c23 (second defect)",
    declared=unmapped,
)
