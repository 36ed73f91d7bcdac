"""Rows that judge a draft run only the processors that can change an argmax, and min-p is none of them."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ZERO, Parameters


def without_min_p(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without min-p where a draft is judged."""
    return parameters if row == drafts else parameters._replace(min_p=ZERO)


MUTANT = in_situation(
    "min-p",
    "min-p-for-bonus-only",
    "min-p holds for the extra token alone",
    category="F",
    citation="vLLM PR #42802",
    killed_by="support_at_boundary_draws",
    row_parameters=without_min_p,
)
