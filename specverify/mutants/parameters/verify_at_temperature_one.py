"""Verification takes the softmax of the raw logits: the temperature is not one of its arguments."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Parameters


def untempered(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the temperature where a draft is judged."""
    return parameters if row == drafts else parameters._replace(temperature=1)


MUTANT = in_situation(
    "temperature",
    "verify-at-temperature-one",
    "drafts are judged at temperature 1",
    category="F",
    citation="lattice issue #388 (first part)",
    row_parameters=untempered,
)
