"""With a lookup drafter the probabilities come from the proposal, a point mass, and their logarithms are 0."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ONE, ExactPmf


def of_proposal(rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int) -> Fraction:
    """Return the mass of a point mass."""
    return ONE


MUTANT = in_situation(
    "reported probabilities of lookup",
    "logarithms-of-lookup-are-zero",
    "with lookup every logarithm is 0",
    category="O",
    citation="vLLM issue #17876 (symptom; its cause was not established)",
    probability=of_proposal,
)
