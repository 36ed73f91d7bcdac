"""Verification scheduled over a batch by a confidence that depends on the drafts: q(d_i) for draft i.

Not lossless: ``declared_law`` returns the law of the output. As in ``scheduled-verification``, at most ``budget``
drafts of the whole batch are verified: those for which the product of the confidences up to the draft is largest. Here
the confidence is the probability of the drafted token itself, which engines use if there is no confidence head. A
likely draft is verified more often than an unlikely one, and where a draft is not verified the token comes from p. So
likely drafts are emitted with more than probability p(d). If drafts are argmaxes, q(d) is known from the row alone, and
there is no bias (vllm-ascend's scheduler for DFlash).

The law of the request is a sum over its block and the other request's block, cut by the schedule; the text of the other
request is the same in every round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..batches import Texts, best_slots, of_the_draft, served_together
from ..coupling import accept_probability, excess_law
from ..laws import drafted_blocks, law_of_rounds
from ..lengths.constant import constant
from ..limits import greedy_models
from ..models import draft_model
from ..rounds import from_parts, without_proposal
from ..types import Algorithm, Claim, Draws, LanguageModel, Parts, Reduction, Task, Tokens, chain
from ..verifiers.speculative_sampling import speculative_sampling
from .scheduled_verification import scheduled_drafter


@from_parts
def build(task: Task, gamma: int = 7, budget: int = 8, beside: Tokens = (0,)) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens for two requests and verifies ``budget`` drafts of both together.

    Verified are the drafts with the largest product of q(d) up to the draft. The decoder decodes one of the requests;
    the text of the other is ``beside`` in every round. The decoder has no function ``propose``, because which drafts
    are verified depends on the drafts of both requests.
    """
    drafter = scheduled_drafter(task, gamma, budget, beside, of_the_draft)
    return Parts(drafter, constant(gamma), speculative_sampling, around=without_proposal)


def batch(
    task: Task, prompts: Sequence[Tokens], gamma: int = 7, budget: int = 8, beside: Tokens = (0,)
) -> Callable[[Draws], Texts]:
    """Return a program that decodes all ``prompts`` in one batch and returns the new tokens of each.

    A round drafts ``gamma`` tokens for each request, and verifies the ``budget`` drafts of the batch with the largest
    product of q(d) up to this draft. ``beside`` is not used.
    """
    return served_together(task, prompts, gamma, best_slots(budget, of_the_draft))


def declared_law(
    task: Task, prompt: Tokens, gamma: int = 7, budget: int = 8, beside: Tokens = (0,)
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability.

    It is a sum over the drafted blocks of both requests; a pair of blocks is cut by the schedule and then verified. The
    options are those of ``build``.
    """
    draft, plan = draft_model(task), best_slots(budget, of_the_draft)

    def of(prefix: Tokens, block: Tokens) -> Any:
        return chain(block, tuple(draft(prefix + block[:i]) for i in range(len(block))))

    def lengths(prefix: Tokens, block: Tokens) -> dict[int, Any]:
        shares: dict[int, Any] = {}
        for other, mass in drafted_blocks(draft, beside, gamma):
            count = plan((of(prefix, block), of(beside, other)))[0]
            shares[count] = shares.get(count, 0) + mass
        return shares

    def committed(prefix: Tokens, remaining: int) -> Iterator[tuple[Tokens, Any]]:
        for block, mass in drafted_blocks(draft, prefix, min(gamma, remaining - 1)):
            for count, share in lengths(prefix, block).items():
                for text, chance in verified(task.target, draft, prefix, block[:count]):
                    yield text, mass * share * chance

    return law_of_rounds(task, prompt, committed)


def verified(
    target: LanguageModel, draft: LanguageModel, prefix: Tokens, block: Tokens
) -> Iterator[tuple[Tokens, Any]]:
    """Yield each possible result (new tokens) of speculative sampling on the drafted ``block``, and its probability."""
    left: Any = 1
    for i, token in enumerate(block):
        p, q = target(prefix + block[:i]), draft(prefix + block[:i])
        kept = accept_probability(p, q, token)
        for other, mass in enumerate(excess_law(p, q).tolist()):
            yield (*block[:i], other), left * (1 - kept) * mass
        left = left * kept
    for token, mass in enumerate(target(prefix + block).tolist()):
        yield (*block, token), left * mass


ALGORITHM = Algorithm(
    name="scheduled-by-draft",
    summary="of two requests verify the slots with the largest product of q(d) (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1, "budget": 1, "beside": (0,)}, {"gamma": 2, "budget": 2, "beside": (1, 0)}),
    paper="arXiv 2607.05147, its schedule with q(d) for the confidence head",
    declared_law=declared_law,
    reductions=(
        Reduction("autoregressive", "a budget of no slots", {"gamma": 2, "budget": 0}),
        Reduction(
            "scheduled-verification",
            "p and q one-hot",
            {"gamma": 2, "budget": 2},
            {"gamma": 2, "budget": 2},
            limit=greedy_models,
        ),
    ),
    batch=batch,
)
