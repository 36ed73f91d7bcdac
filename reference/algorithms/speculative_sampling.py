"""Speculative sampling with a draft model and a fixed gamma (2211.17192, Algorithm 1; 2302.01318, Algorithm 2)."""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.constant import constant
from ..limits import greedy_draft, greedy_target
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and verifies them with one target call."""
    return Parts(model_drafter(draft_model(task)), constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="speculative-sampling",
    summary="accept d ~ q with probability min(1, p/q), else emit from norm((p - q)+)",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}, {"gamma": 3}, {"gamma": 0}),
    paper="arXiv 2211.17192, Algorithm 1; arXiv 2302.01318, Algorithm 2",
    systems=("SD (Leviathan et al.)", "SD (Chen et al.)"),
    needs_training="how often a trained drafter agrees with a trained target, and the saved time",
    reductions=(
        Reduction("autoregressive", "gamma = 0", {"gamma": 0}),
        Reduction("greedy-speculation", "p one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_target),
        Reduction("sample-and-match", "q one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_draft),
    ),
)
