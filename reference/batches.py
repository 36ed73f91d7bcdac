"""Requests served in one batch: the choice of drafts to verify, and decoding several texts at once.

A target pass can verify ``budget`` drafts of a batch. Every draft position (slot) of every request has a confidence,
and its survival is the product of the confidences up to it. The slots with the largest survival are verified (DSpark
2607.05147; vLLM's adaptive verification; vllm-ascend's ``DynamicSpecScheduler``). Survival decreases along a request,
so the verified slots are a prefix of its block. Ties go to the earlier request, then to the earlier slot.

If the confidence of a slot does not depend on its own draft, the choice of a slot does not either: one could choose the
slots one after another, the best first, and draw each draft after its choice. So for each request the schedule is a
length rule. The texts are independent and have the target's law, although a request's draft length depends on the other
requests. A confidence that depends on the draft, such as q(d), selects drafts by their values, which is biased.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .drafters.model import model_drafter
from .models import draft_model
from .parameters import exact, parameter
from .pmf import checked_model
from .rounds import commit, initial_state
from .types import (
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Pmf,
    Site,
    Task,
    Tokens,
    Verified,
    Verifier,
    chain,
    never,
)
from .verifiers.speculative_sampling import speculative_sampling

Confidence: TypeAlias = Callable[[Pmf, int], Any]
"""``confidence(q, token)``: the score of a draft, from its pmf ``q`` and its id ``token``."""
Plan: TypeAlias = Callable[[Sequence[Draft]], Sequence[int]]
"""Maps the drafts of all requests to the number of drafts of each request that are verified."""
Texts: TypeAlias = tuple[Tokens, ...]


def largest(q: Pmf, token: int) -> Any:
    """Return the largest entry of ``q``, a draft's row: a confidence that does not depend on the drawn ``token``."""
    return q.max()


def of_the_draft(q: Pmf, token: int) -> Any:
    """Return q of the drafted token: a confidence that depends on the drawn token."""
    return q[token]


def survivals(draft: Draft, confidence: Confidence) -> list[Any]:
    """Return the survival of every draft position of a chain: the product of the confidences up to this position.

    The confidence of a position is ``confidence(q, token)``, with the drafted token and the q from which it was drawn.
    """
    products: list[Any] = []
    for token, q in zip(draft.tokens, draft.pmfs, strict=True):
        chance = confidence(q, token)
        products.append(products[-1] * chance if products else chance)
    return products


def best_slots(budget: int, confidence: Confidence) -> Plan:
    """Return the schedule that verifies the ``budget`` draft positions of a batch that most probably are accepted.

    These are the positions with the largest survival: the product of the confidences of a draft and of all drafts
    before it in its request (``survivals``). The confidence of a draft is ``confidence(q, token)``. A schedule is a
    function from the drafts of all requests to the number of verified drafts of each.
    """

    def plan(drafts: Sequence[Draft]) -> list[int]:
        slots = [
            (-survival, request, slot)
            for request, draft in enumerate(drafts)
            for slot, survival in enumerate(survivals(draft, confidence))
        ]
        taken = [request for _, request, _ in sorted(slots)[: max(budget, 0)]]
        return [taken.count(request) for request in range(len(drafts))]

    return plan


def best_gain(costs: Sequence[tuple[Any, Any]], confidence: Confidence) -> Plan:
    """Return the schedule that verifies a share of the batch's draft positions: the one with the largest gain per cost.

    ``costs`` has pairs (share in [0, 1], cost of verifying it). A share selects the positions with the largest
    survival, the product of the confidences up to a position (``survivals``); its gain is the sum of their survivals.
    In a tie the first share is chosen. Raises ``ValueError`` for an invalid share or cost, or no pair.
    """
    if not costs or any(not 0 <= share <= 1 or not cost > 0 for share, cost in costs):
        raise ValueError(f"costs are {tuple(costs)}, expected pairs of a share in [0, 1] and a cost > 0, at least one")

    def plan(drafts: Sequence[Draft]) -> list[int]:
        chances = sorted((chance for draft in drafts for chance in survivals(draft, confidence)), reverse=True)
        rows = [q for draft in drafts for q in draft.pmfs]
        counts = [math.ceil(exact(share) * len(chances)) for share, _ in costs]
        gains = [
            sum(chances[:count]) / parameter(cost, rows[0])
            for count, (_, cost) in zip(counts, costs if rows else (), strict=bool(rows))
        ]
        best = counts[gains.index(max(gains))] if gains else 0
        return list(best_slots(best, confidence)(drafts))

    return plan


def beginning(draft: Draft, count: int) -> Draft:
    """Return the chain of the first ``count`` tokens of the chain ``draft``."""
    return chain(draft.tokens[:count], draft.pmfs[:count])


class OfRequest:
    """A source of draws for one request of a batch.

    It adds the request's number to the name (site) of each draw. So the draws of two requests have different names.
    """

    def __init__(self, draws: Draws, request: int) -> None:
        """Store ``draws``, which makes all draws, and ``request``, the number that is added to their names."""
        self._draws, self._request = draws, request

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return an outcome of ``pmf``, drawn at the site ``("request", request, *site)``."""
        return self._draws.categorical(pmf, ("request", self._request, *site))


def every_slot(drafts: Sequence[Draft]) -> list[int]:
    """Return how many draft tokens of each request are verified: all of them.

    ``drafts`` has the ``Draft`` of each request.
    """
    return [len(draft.tokens) for draft in drafts]


def apart(verified: Sequence[Verified]) -> list[Tokens]:
    """Return the tokens that each request commits: all tokens of its own verification.

    ``verified`` has the result of each request.
    """
    return [one.tokens for one in verified]


def in_step(verified: Sequence[Verified]) -> list[Tokens]:
    """Return the tokens that each request commits: from every request as many as the shortest result has.

    ``verified`` has the result of each request; its first tokens are committed.
    """
    least = min(len(one.tokens) for one in verified)
    return [one.tokens[:least] for one in verified]


def served_together(
    task: Task,
    prompts: Sequence[Tokens],
    gamma: int,
    plan: Plan = every_slot,
    commits: Callable[[Sequence[Verified]], list[Tokens]] = apart,
    *,
    drafter: Drafter | None = None,
    verify: Verifier = speculative_sampling,
) -> Callable[[Draws], Texts]:
    """Return a program that decodes ``prompts`` in one batch, round by round, and returns the new tokens of each.

    Args:
        task: The decoding task.
        prompts: Prompt of each request.
        gamma: Number of drafts of a request in a round.
        plan: Maps the drafts of all requests to the number of drafts that are verified, one number for each request.
        commits: Maps the verified results of all requests to the tokens that each request commits.
        drafter: A drafter without state; None draws from q.
        verify: The verifier.
    """
    target, drafting = checked_model(task.target, "target"), drafter or model_drafter(draft_model(task))

    def program(draws: Draws) -> Texts:
        texts = [initial_state(prompt, task).tokens for prompt in prompts]
        left, number = [task.horizon] * len(texts), 0
        while going := [request for request in range(len(texts)) if left[request]]:
            own = [OfRequest(OfRequest(draws, request), number) for request in going]
            drafts = [
                drafting.propose(one, None, texts[request], min(gamma, left[request] - 1), never)
                for one, request in zip(own, going, strict=True)
            ]
            kept = [beginning(draft, count) for draft, count in zip(drafts, plan(drafts), strict=True)]
            verified = [
                verify(one, target, texts[request], draft) for one, request, draft in zip(own, going, kept, strict=True)
            ]
            for request, tokens in zip(going, commits(verified), strict=True):
                new, left[request] = commit(tokens, left[request], task.eos)
                texts[request] += new
            number += 1
        return tuple(text[len(prompt) :] for text, prompt in zip(texts, prompts, strict=True))

    return program


def other_block(draws: Draws, draft: LanguageModel, prompt: Tokens, gamma: int) -> Draft:
    """Return a block of ``gamma`` tokens that ``draft`` drafts for another request, whose text is ``prompt``.

    In the names of its draws the other request has the number 1.
    """
    return model_drafter(draft).propose(OfRequest(draws, 1), None, prompt, gamma, never)
