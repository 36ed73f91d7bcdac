"""Verification scheduled over a batch by a confidence that does not depend on the drafts.

DSpark (2607.05147) scores every drafted slot (a draft position of a request) by a confidence head. The survival of a
slot is the product of the confidences up to it. Of all slots of the batch, the ``budget`` ones with the largest
survival are verified. So do vLLM (vllm-project/vllm, pull request 47808, ``_assign_draft_token_budget`` of
``adaptive_verification.py``) and vllm-ascend (182b75e, ``vllm_ascend/spec_decode/utils.py``, ``DynamicSpecScheduler``).

The confidence of slot i depends on its row and the drafts before it, not on draft i. So the output is lossless, for
each request and for all jointly (``batches``). In ``scheduled-by-draft`` the confidence depends on draft i.

``build`` decodes one request beside a second one, whose text is ``beside`` in every round. ``batch`` decodes several
requests to their ends. The confidence head is modelled by the largest entry of q.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..batches import Confidence, Texts, beginning, best_slots, largest, other_block, served_together
from ..drafters.model import model_drafter, stateless
from ..lengths.constant import check_gamma, constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Draft, Drafter, Draws, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling


def scheduled_drafter(task: Task, gamma: int, budget: int, beside: Tokens, confidence: Confidence) -> Drafter:
    """Return a drafter that returns only the tokens that the schedule verifies.

    ``gamma`` tokens are drafted for this request and for another one with the text ``beside``. Of both together the
    schedule verifies the ``budget`` draft positions with the largest product of confidences. ``confidence(q, token)``
    returns the confidence of one position, where ``token`` was drafted from q.
    """
    draft = draft_model(task)
    own, plan = model_drafter(draft), best_slots(budget, confidence)
    check_gamma(gamma, "gamma")
    check_gamma(budget, "budget")

    def propose(draws: Draws, _: object, prefix: Tokens, most: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        block = own.propose(draws, None, prefix, most, stop_after)
        other = other_block(draws, draft, beside, gamma) if block.tokens else block
        return beginning(block, plan((block, other))[0]) if block.tokens else block

    return Drafter(init=stateless, propose=propose, observe=stateless)


@from_parts
def build(task: Task, gamma: int = 7, budget: int = 8, beside: Tokens = (0,)) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens for two requests and verifies ``budget`` drafts of both together.

    Verified are the drafts with the largest product of confidences up to them. The confidence of a draft is the largest
    entry of its q. The decoder decodes one of the two requests; ``beside`` is the text of the other one in every round.
    """
    drafter = scheduled_drafter(task, gamma, budget, beside, largest)
    return Parts(drafter, constant(gamma), speculative_sampling)


def batch(
    task: Task, prompts: Sequence[Tokens], gamma: int = 7, budget: int = 8, beside: Tokens = (0,)
) -> Callable[[Draws], Texts]:
    """Return a program that decodes all ``prompts`` in one batch and returns the new tokens of each.

    A round drafts ``gamma`` tokens for each request, and verifies ``budget`` drafts of the batch: those with the
    largest product of confidences up to them. ``beside`` is not used.
    """
    return served_together(task, prompts, gamma, best_slots(budget, largest))


ALGORITHM = Algorithm(
    name="scheduled-verification",
    summary="of two requests verify the slots most likely to be reached, by confidences that do not read their "
    "own draft",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1, "budget": 1, "beside": (0,)}, {"gamma": 2, "budget": 2, "beside": (1, 0)}),
    paper="arXiv 2607.05147; code: vllm-project/vllm, vllm/v1/worker/gpu/spec_decode/adaptive_verification.py",
    systems=("DSpark's scheduler", "vLLM's adaptive verification"),
    needs_training="how well a confidence head predicts acceptance",
    reductions=(Reduction("autoregressive", "a budget of no slots", {"gamma": 2, "budget": 0}),),
    batch=batch,
)
