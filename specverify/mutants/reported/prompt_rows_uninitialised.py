"""The prompt's probabilities are asked for, and come from rows that nothing was written to."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ZERO, ExactPmf
from specverify.reference import Tokens


def empty(rows: Sequence[ExactPmf], prompt: Tokens, drafts: int) -> tuple[Fraction, ...]:
    """Return what an array holds before anything is written."""
    return (ZERO,) * len(prompt)


MUTANT = in_situation(
    "reports",
    "prompt-rows-uninitialised",
    "the prompt's rows are never filled",
    category="O",
    citation="vLLM PR #8047",
    killed_by="scores_match",
    of_prompt=empty,
)
