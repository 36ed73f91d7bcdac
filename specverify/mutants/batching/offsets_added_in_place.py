"""The array of offsets is handed out by reference and added to in place, so rows begin where others ended."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation


def running_offset(held: Sequence[int], fed: Sequence[int]) -> tuple[int, ...]:
    """Return offsets that grow with what the rows before were fed."""
    return tuple(begin + sum(fed[:row]) for row, begin in enumerate(held))


MUTANT = in_situation(
    "batch",
    "offsets-added-in-place",
    "one row's offset moves the others",
    category="L",
    citation="mlx-lm commit 1898164b (branch)",
    positions=running_offset,
)
