"""Fuzzy speculative decoding replaces a draft by a token of p without the draft."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import Parts, Task, from_parts, residual
from specverify.reference.algorithms import fuzzy_speculative_decoding
from specverify.reference.coupling import total_variation
from specverify.reference.models import draft_model
from specverify.reference.parameters import parameter
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


@from_parts
def build(task: Task, threshold: Any = 0, gamma: int = 5) -> Parts:
    """Replace from the residual, as the lossless rule does."""
    draft = draft_model(task)
    verify = accept_or_replace(
        lambda prefix, p, q, token: int(total_variation(p, draft(prefix)) <= parameter(threshold, p)),
        lambda p, q, token: residual(p, q),
    )
    parts = fuzzy_speculative_decoding.build.parts(task, threshold, gamma)
    assert isinstance(parts, Parts)
    return parts._replace(verifier=verify)


MUTANT = planted(
    "fuzzy-speculative-decoding",
    "fuzzy-residual",
    "replaces a draft from what p has besides it",
    build,
    category="C",
    citation="plausible",
    killed_by="law_is_declared",
)
