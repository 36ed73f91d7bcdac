"""Rows that judge a draft are scored at temperature 1 without truncation; only the extra token's row is processed."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Parameters


def defaults(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the request's parameters for the extra token alone."""
    return parameters if row == drafts else Parameters()


MUTANT = in_situation(
    "everything",
    "verify-rows-with-defaults",
    "verify rows know no parameters",
    category="F",
    citation="vLLM issue #9834, PR #10198",
    row_parameters=defaults,
)
