"""A request whose prompt is still being fed counts as one row that decodes: the rows behind it are shifted."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.scheduler import starts


def one_row_each(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return where rows begin if a prompt's chunk takes one place."""
    counted = [1 if prefill else length for length, prefill in zip(lengths, prefilling, strict=True)]
    return starts(counted, rectangular, prefilling)


MUTANT = in_situation(
    "staggered prompts",
    "prefilling-rows-counted",
    "prefilling requests count as one row",
    category="M",
    citation="exllamav3 commit 188d073",
    rows_begin=one_row_each,
)
