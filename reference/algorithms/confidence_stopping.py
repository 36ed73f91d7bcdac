"""Speculative sampling that stops drafting after a token the drafter finds unlikely, and keeps the token."""

from __future__ import annotations

from typing import Any

from reference.drafters.model import model_drafter
from reference.lengths.confidence import confidence
from reference.models import draft_model
from reference.rounds import from_parts
from reference.types import Algorithm, Claim, Parts, Reduction, Task
from reference.verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, threshold: Any = 0.4, gamma: int = 4) -> Parts:
    """Draft at most gamma tokens, none after one with q(token) < threshold."""
    return Parts(model_drafter(draft_model(task)), confidence(threshold, gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="confidence-stopping",
    summary="speculative sampling, draft ends after a token with q(d) below a threshold",
    build=build,
    claims=frozenset(Claim),
    examples=({"threshold": 0.5, "gamma": 2}, {"threshold": 0.4, "gamma": 3}),
    paper="arXiv 2309.08168, Section 3 (draft-exiting); assisted generation's confidence threshold",
    systems=("assisted generation",),
    reductions=(Reduction("speculative-sampling", "threshold = 0", {"threshold": 0, "gamma": 2}, {"gamma": 2}),),
)
