"""The speculative and the plain path disagree about where the live state is, so a round without drafts is forgotten."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def another(drafts: int) -> int:
    """Return another slot for rounds without drafts."""
    return 0 if drafts else 1


MUTANT = in_situation(
    "recurrent, rounds without drafts",
    "plain-state-elsewhere",
    "rounds without drafts store elsewhere",
    category="I",
    citation="vLLM issue #40875, PR #56531",
    state_slot=another,
)
