"""The repetition penalty is applied to the row behind the prompt, not to those of drafts."""

from __future__ import annotations

from specverify.mutants.serving.planted import in_situation
from specverify.mutants.serving.request import ONE, Parameters


def first_only(parameters: Parameters, row: int, drafts: int) -> Parameters:
    """Return the parameters without the repetition penalty if anything was drafted."""
    return parameters._replace(repetition=ONE) if drafts else parameters


MUTANT = in_situation(
    "first token alone",
    "penalty-on-first-token-only",
    "only the prompt's row is penalised",
    category="F",
    citation="mlx-node PR #11 (review)",
    row_parameters=first_only,
)
