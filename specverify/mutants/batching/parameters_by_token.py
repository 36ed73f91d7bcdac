"""A kernel that expects one entry for each request is handed one for each token, and indexes the wrong ones."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import Parameters


def by_token(batch: Sequence[Parameters], row: int, start: int) -> Parameters:
    """Return the parameters at the place of the row's first token."""
    return batch[start % len(batch)]


MUTANT = in_situation(
    "batch of different parameters",
    "parameters-by-token",
    "parameters are indexed by token",
    category="L",
    citation="vLLM PR #35398 (review)",
    parameters_at=by_token,
)
