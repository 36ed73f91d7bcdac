"""Greedy speculation: drafts of a draft model, verified by the target's argmax (2211.17192, Section 2.2)."""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..laws import greedy_law
from ..lengths.constant import constant
from ..limits import greedy_target
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.greedy_match import greedy_match


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and accepts those that are the target's argmax."""
    return Parts(model_drafter(draft_model(task)), constant(gamma), greedy_match)


ALGORITHM = Algorithm(
    name="greedy-speculation",
    summary="accept drafts while d = argmax p, then emit the argmax",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}, {"gamma": 3}, {"gamma": 0}),
    paper="arXiv 2211.17192, Section 2.2 (temperature 0)",
    declared_law=greedy_law,
    systems=("SD at temperature 0",),
    reductions=(Reduction("autoregressive", "gamma = 0, p one-hot", {"gamma": 0}, limit=greedy_target),),
)
