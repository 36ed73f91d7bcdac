"""Drafts are written to the slots behind the first one, although the request's pages are somewhere else."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation


def in_a_row(pages: tuple[int, ...], page_size: int, first: int, count: int) -> tuple[int, ...]:
    """Return consecutive slots from that of the first entry on."""
    start = pages[first // page_size] * page_size + first % page_size
    return tuple(range(start, start + count))


MUTANT = in_situation(
    "batch",
    "slots-taken-as-consecutive",
    "slots are taken as consecutive",
    category="H",
    citation="text-generation-inference PR #2711 (aadc9cb4)",
    slots=in_a_row,
)
