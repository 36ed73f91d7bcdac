"""A prefix is reused up to a block boundary, with a recurrent state that has taken in more than that."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def boundary_of(held: int, boundary: int, recurrent: bool) -> int:
    """Return the boundary, whatever kind of state there is."""
    return boundary


MUTANT = in_situation(
    "recurrent conversation",
    "boundary-state-not-rewound",
    "a prefix is cut, its state is not",
    category="I",
    citation="vLLM PR #45614",
    reused=boundary_of,
)
