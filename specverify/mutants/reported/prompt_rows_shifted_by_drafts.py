"""The rows of the drafts are taken for the last ones of the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.reporting import of_prompt
from specverify.mutants.serving.request import ExactPmf
from specverify.reference import Tokens


def shifted(rows: Sequence[ExactPmf], prompt: Tokens, drafts: int) -> tuple[Fraction, ...]:
    """Return the probabilities by rows that are ``drafts`` too late."""
    return of_prompt(rows[drafts:], prompt, drafts)


MUTANT = in_situation(
    "reports",
    "prompt-rows-shifted-by-drafts",
    "the prompt's rows are read behind drafts",
    category="O",
    citation="vLLM issue #53488 (symptom; its cause was not established)",
    killed_by="scores_match",
    of_prompt=shifted,
)
