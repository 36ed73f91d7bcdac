"""Whether rows are padded is decided twice: by one condition when they are packed, by another when unpacked."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.scheduler import starts


def never_padded(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return where rows begin if they follow one another."""
    return starts(lengths, False, prefilling)


MUTANT = in_situation(
    "ragged batch, padded",
    "unpacked-by-another-rule",
    "padded rows are unpacked as if packed",
    category="L",
    citation="vLLM PR #52500",
    rows_begin=never_padded,
)
