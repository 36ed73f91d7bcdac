"""Rows are taken from the pass as if those without drafts came before the others."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation


def shortest_first(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return where rows would begin in order of their length."""
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    begins = {row: sum(lengths[before] for before in order[:place]) for place, row in enumerate(order)}
    return tuple(begins[row] for row in range(len(lengths)))


MUTANT = in_situation(
    "ragged batch",
    "non-speculative-rows-first",
    "rows without drafts are thought first",
    category="L",
    citation="HabanaAI/vllm-fork PR #1780",
    rows_begin=shortest_first,
)
