"""Speculative sampling that stops drafting after a token that the drafter finds unlikely, and keeps this token."""

from __future__ import annotations

from typing import Any

from ..drafters.model import model_drafter
from ..lengths.confidence import confidence
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, threshold: Any = 0.4, gamma: int = 4) -> Parts:
    """Return the decoder that drafts at most ``gamma`` tokens, none after a token with q(token) < ``threshold``."""
    return Parts(model_drafter(draft_model(task)), confidence(threshold, gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="confidence-stopping",
    summary="speculative sampling; drafting ends after a token with q(d) below a threshold",
    build=build,
    claims=frozenset(Claim),
    examples=({"threshold": 0.5, "gamma": 2}, {"threshold": 0.4, "gamma": 3}),
    paper="arXiv 2309.08168, Section 3 (draft-exiting); assisted generation's confidence threshold",
    systems=("assisted generation",),
    reductions=(Reduction("speculative-sampling", "threshold = 0", {"threshold": 0, "gamma": 2}, {"gamma": 2}),),
)
