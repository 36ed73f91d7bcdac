"""A batch in lockstep: every request commits as many tokens as the request that commits fewest.

This is the simplest way to avoid rows of different lengths: accepted tokens beyond the shortest row are discarded. (The
remedy of 2510.22876 lets rows differ and repairs the padding.) The rule is exact: whether the i-th token of a block is
committed depends on the acceptance of the tokens before it and on the other requests, not on the token itself. A round
may end with a draft, because the token drawn from the target after it is discarded.

``build`` decodes one request beside a second one, whose text is ``beside`` in every round. ``batch`` decodes several
requests to their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..batches import OfRequest, Texts, in_step, other_block, served_together
from ..drafters.model import model_drafter
from ..lengths.constant import check_gamma, constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Draws,
    LanguageModel,
    Parts,
    Reduction,
    Task,
    Tokens,
    Verified,
    Verifier,
)
from ..verifiers.speculative_sampling import speculative_sampling


def cut_to_the_other(q: LanguageModel, beside: Tokens, gamma: int) -> Verifier:
    """Return speculative sampling that commits at most as many tokens as the other request does in the same round.

    The other request has the text ``beside`` and drafts ``gamma`` tokens from ``q``.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        verified = speculative_sampling(draws, target, prefix, draft)
        if len(verified.tokens) == 1:
            return verified
        other = other_block(draws, q, beside, gamma)
        most = len(speculative_sampling(OfRequest(draws, 1), target, beside, other).tokens)
        return Verified(verified.tokens[:most], min(verified.accepted, most))

    return verify


@from_parts
def build(task: Task, gamma: int = 4, beside: Tokens = (0,)) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens for each of two requests and commits equally many for both.

    It commits as many as the shorter result of the two has. It decodes one of the requests; ``beside`` is the text of
    the other in every round.
    """
    check_gamma(gamma, "gamma")
    draft = draft_model(task)
    return Parts(model_drafter(draft), constant(gamma), cut_to_the_other(draft, beside, gamma))


def batch(task: Task, prompts: Sequence[Tokens], gamma: int = 4, beside: Tokens = (0,)) -> Callable[[Draws], Texts]:
    """Return a program that decodes all ``prompts`` in one batch and returns the new tokens of each.

    ``gamma`` is the number of drafts of each request; ``beside`` is not used.
    """
    return served_together(task, prompts, gamma, commits=in_step)


ALGORITHM = Algorithm(
    name="lockstep-batch",
    summary="speculative sampling of two requests; both commit as many tokens as the shorter one",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1, "beside": (0,)}, {"gamma": 2, "beside": (1, 0)}),
    paper="arXiv 2510.22876 (ragged batches)",
    systems=("batch speculative decoding in lockstep",),
    reductions=(Reduction("autoregressive", "gamma = 0", {"gamma": 0}),),
    batch=batch,
)
