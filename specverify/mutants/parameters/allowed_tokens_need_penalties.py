"""The size of the batch is read off a list that is empty unless some request has a penalty."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.processors import permitted
from specverify.mutants.serving.request import ONE, Parameters


def by_penalties(parameters: Parameters, size: int) -> frozenset[int]:
    """Return the allowed tokens; raises ``IndexError`` if there are some, and no penalties."""
    penalties = [size] if (parameters.repetition, parameters.frequency) != (ONE, ONE) else []
    return permitted(parameters, penalties[0] if parameters.allowed else size)


MUTANT = in_situation(
    "allowed tokens",
    "allowed-tokens-need-penalties",
    "allowed tokens without penalties crash",
    category="F",
    citation="vLLM PR #35654",
    permitted=by_penalties,
)
