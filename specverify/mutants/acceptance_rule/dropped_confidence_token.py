"""The token the drafter was unsure of is dropped instead of kept: the draft is conditioned on what was drawn."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import dropping_last, planted
from specverify.reference import Parts, Task, confidence, from_parts, model_drafter
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, threshold: Any = 0.4, gamma: int = 4) -> Parts:
    """Confidence stopping that takes the last token back."""
    rule = confidence(threshold, gamma)
    return Parts(dropping_last(model_drafter(draft_model(task)), rule.stop_after), rule, speculative_sampling)


MUTANT = planted(
    "confidence-stopping",
    "dropped-confidence-token",
    "drops the token it was unsure of",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_target",
)
