"""Each chunk of a prompt yields a sample that is thrown away, and the offsets of the probabilities do not know it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ExactPmf


def too_early(rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int) -> Fraction:
    """Return the probability by a row as much too early as there were chunks."""
    return rows[max(index - chunks, 0)][token]


MUTANT = in_situation(
    "reported probabilities, in chunks",
    "discarded-samples-not-counted",
    "offsets leave out discarded samples",
    category="O",
    citation="vLLM PR #29216",
    probability=too_early,
)
