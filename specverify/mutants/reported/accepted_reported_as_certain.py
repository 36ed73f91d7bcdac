"""Accepted drafts are handed out with the probability 1, whatever the target gave them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ONE, ExactPmf


def certain(rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int) -> Fraction:
    """Return 1 for an accepted draft."""
    return ONE if index < accepted else rows[index][token]


MUTANT = in_situation(
    "reported probabilities",
    "accepted-reported-as-certain",
    "accepted drafts are reported with 1",
    category="O",
    citation="llama.cpp issue #27972",
    probability=certain,
)
