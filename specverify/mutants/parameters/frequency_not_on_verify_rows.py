"""The speculative path applies no frequency penalty."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ONE, Parameters


def unpenalised(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the frequency penalty."""
    return parameters._replace(frequency=ONE)


MUTANT = in_situation(
    "penalties",
    "frequency-not-on-verify-rows",
    "no frequency penalty under speculation",
    category="F",
    citation="vLLM issue #18902",
    row_parameters=unpenalised,
)
