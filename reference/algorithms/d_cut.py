"""D-Cut: choose how many drafts of a batch are verified, by expected gain per cost (2607.14647).

A parallel drafter fills a block with the argmax of each row. The score of slot k (draft position k) of a request is the
product of the largest entries of its rows up to k: an estimate of the probability that all drafts up to k are accepted.
``costs`` lists shares of all slots of the batch, each with the measured cost of verifying it. If a share is n slots,
its gain is the sum of the n largest scores of the batch. The share with the largest gain per cost is verified. The rule
is that of the notes of Tencent/AngelSlim at 67394ce, ``docs/source/_extra/dcut.html``.

An argmax is not random, and its score is a function of the text. So the cut is a length rule, and matching with draws
from the target is exact. With sampled drafts the same score would depend on the draft, which is biased
(``scheduled-by-draft``).

``build`` decodes one request beside a second one, whose text is ``beside`` in every round. ``batch`` decodes several
requests to their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ..batches import Texts, beginning, best_gain, largest, served_together
from ..drafters.block_rows import argmaxes_of_rows
from ..drafters.model import stateless
from ..lengths.constant import check_gamma, constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Draft, Drafter, Draws, Parts, Pmf, Reduction, Task, Tokens, chain
from ..verifiers.sample_and_match import sample_and_match

Costs: TypeAlias = tuple[tuple[Any, Any], ...]
COSTS: Costs = ((0.25, 1), (0.5, 1.25), (0.75, 1.5), (1, 2))
"""The four cost settings of the notes as pairs (share, relative cost); the costs grow as in the first table there."""


@from_parts
def build(task: Task, gamma: int = 7, costs: Costs = COSTS, beside: Tokens = (0,)) -> Parts:
    """Return the decoder that drafts ``gamma`` argmaxes for each of two requests and verifies a share of all drafts.

    It decodes one of the requests; ``beside`` is the text of the other in every round. ``costs`` has pairs (share of
    the drafts, cost of verifying it); the share with the largest expected acceptance per cost is verified.
    """
    check_gamma(gamma, "gamma")
    draft, plan = draft_model(task), best_gain(costs, largest)

    def propose(draws: Draws, _: object, prefix: Tokens, most: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        own, other = argmaxes_of_rows(draft, prefix, most), argmaxes_of_rows(draft, beside, gamma)
        kept = beginning(own, plan((own, other))[0]) if own.tokens else own
        return chain(kept.tokens, (None,) * len(kept.tokens))

    drafter = Drafter(init=stateless, propose=propose, observe=stateless)
    return Parts(drafter, constant(gamma), sample_and_match)


def batch(
    task: Task, prompts: Sequence[Tokens], gamma: int = 7, costs: Costs = COSTS, beside: Tokens = (0,)
) -> Callable[[Draws], Texts]:
    """Return a program that decodes all ``prompts`` in one batch and returns the new tokens of each.

    ``gamma`` and ``costs`` are those of ``build``. ``beside`` is not used.
    """
    draft = draft_model(task)

    def propose(draws: Draws, _: object, prefix: Tokens, most: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        return argmaxes_of_rows(draft, prefix, most)

    drafter = Drafter(init=stateless, propose=propose, observe=stateless)
    return served_together(task, prompts, gamma, best_gain(costs, largest), drafter=drafter, verify=sample_and_match)


ALGORITHM = Algorithm(
    name="d-cut",
    summary="blocks of argmaxes of two requests, cut to the part with the best survival per cost; compared with "
    "draws of p",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"gamma": 1, "costs": ((0.5, 1), (1, 1.5)), "beside": (0,)},
        {"gamma": 2, "costs": ((0.25, 1), (0.5, 1.5), (1, 2)), "beside": (1, 0)},
    ),
    paper="arXiv 2607.14647; notes: Tencent/AngelSlim 67394ce, docs/source/_extra/dcut.html",
    systems=("D-Cut",),
    needs_training="how well the largest entry of a row predicts acceptance, and the cost of verifying a share of "
    "the slots",
    reductions=(
        Reduction("dflash", "every slot is verified", {"gamma": 2, "costs": ((1, 1),)}, {"block": 2}),
        Reduction("autoregressive", "no slot is verified", {"gamma": 2, "costs": ((0, 1),)}),
    ),
    batch=batch,
)
