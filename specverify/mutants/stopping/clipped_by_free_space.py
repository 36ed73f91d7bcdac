"""Drafts that do not fit are cut by as many as would fit, instead of by as many as are too many."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def by_free_space(gamma: int, left: int) -> int:
    """Return the number asked for less the free places, if they do not suffice."""
    return gamma if gamma < left else gamma - (left - 1)


MUTANT = in_situation(
    "context length",
    "clipped-by-free-space",
    "drafts are clipped by the space left",
    category="K",
    citation="exllamav2 commit 7019a1b",
    draft_budget=by_free_space,
)
