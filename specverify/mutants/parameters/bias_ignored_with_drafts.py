"""The bias has no form for several rows of one request, so it is dropped without a word where there are drafts."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Parameters


def unbiased(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without their bias if anything was drafted."""
    return parameters._replace(bias=()) if drafts else parameters


MUTANT = in_situation(
    "bias",
    "bias-ignored-with-drafts",
    "no bias where there are drafts",
    category="F",
    citation="vLLM issue #38202, PR #38467",
    row_parameters=unbiased,
)
