"""Draft & Verify: the target without some of its layers drafts, until its confidence is below an adaptive threshold.

Here the drafts are drawn from q and verified by speculative sampling. The released sampler's default takes the argmax
of q and verifies it with the whole q, which is biased. If no layer is skipped, q = p and nothing is rejected. The paper
searches offline which layers to skip, by Bayesian optimisation; here their number is an option.
"""

from __future__ import annotations

from typing import Any

from ..drafters.model import model_drafter
from ..drafters.self_draft import partial_model
from ..lengths.adaptive_threshold import Schedule, Threshold, adaptive_threshold
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import chain_decoder
from ..types import Algorithm, Claim, Decoder, Draft, Draws, Reduction, State, Task
from ..verifiers.speculative_sampling import speculative_sampling


def build(
    task: Task,
    gamma: int = 8,
    threshold: Any = 0.5,
    schedule: Schedule = Schedule(),  # noqa: B008 - an immutable default
    skipped: int = 2,
    layers: int = 4,
) -> Decoder:
    """Return the decoder whose drafter is the target with ``skipped`` of its ``layers`` layers left out.

    At most ``gamma`` tokens are drafted, up to and including the first with q(token) below a threshold. The threshold
    of the first round is ``threshold``; after each round ``schedule`` changes it by the share of accepted drafts.
    """
    q = partial_model(checked_model(task.target, "target"), draft_model(task), layers - skipped, layers)

    def with_threshold(now: Threshold) -> Decoder:
        rule = adaptive_threshold(now, Threshold(threshold), schedule, gamma)
        return chain_decoder(task, model_drafter(q), rule, speculative_sampling)

    def this_round(state: State) -> Decoder:
        assert isinstance(state.length, Threshold)
        return with_threshold(state.length)

    def propose(draws: Draws, state: State) -> Draft:
        decoder = this_round(state)
        assert decoder.propose is not None
        return decoder.propose(draws, state)

    return Decoder(
        init=with_threshold(Threshold(threshold)).init,
        step=lambda draws, state: this_round(state).step(draws, state),
        propose=propose,
    )


ALGORITHM = Algorithm(
    name="draft-and-verify",
    summary="drafts skip layers; drafting ends after a token with q(d) below a threshold that adapts to the acceptance",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 2, "threshold": 0.5}, {"gamma": 3, "threshold": 0.4, "schedule": Schedule(step=0.5)}),
    paper="arXiv 2309.08168, Sections 3.2 and 3.3",
    systems=("Draft&Verify",),
    needs_training="which layers can be skipped",
    reductions=(
        Reduction(
            "speculative-sampling",
            "all layers are skipped, and the threshold is always 0",
            {"threshold": 0, "schedule": Schedule(step=0), "skipped": 2, "layers": 2, "gamma": 2},
            {"gamma": 2},
        ),
    ),
)
