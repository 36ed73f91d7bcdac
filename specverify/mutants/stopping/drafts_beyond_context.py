"""The lookup drafter does not know how long the context may be and proposes past its end."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def unclipped(gamma: int, left: int) -> int:
    """Return the number asked for."""
    return gamma


MUTANT = in_situation(
    "lookup to the end of the context",
    "drafts-beyond-context",
    "drafts go beyond the context",
    category="K",
    citation="vLLM issue #42533",
    draft_budget=unclipped,
)
