"""SpecDec++: stop drafting if a head predicts that some draft will be rejected (Huang et al. 2405.19715).

The rule is that of the released code, Kaffaljidhmah2/SpecDec_pp at 9c52edc, ``specdec_pp/hf_generation.py``, steps 1.1
to 1.4. The head returns an acceptance probability for the token that was fed last. So after drafting token i it has
predicted for tokens 1 to i - 1 (``skip the first round``). Drafting stops, with token i kept, if one minus the product
of its predictions is above the threshold. So whether token i + 1 is drafted depends on tokens that remain in the block,
and not on token i + 1. The rule is therefore exact for every head. Here q(d) replaces the prediction of the trained
head.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

from ..drafters.model import stateless
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..rounds import from_parts
from ..types import (
    Algorithm,
    Claim,
    Draft,
    Drafter,
    Draws,
    LanguageModel,
    Parts,
    Pmf,
    Reduction,
    Task,
    Tokens,
    chain,
)
from ..verifiers.speculative_sampling import speculative_sampling


def predicting_drafter(draft: LanguageModel, threshold: Any) -> Drafter:
    """Return a drafter that draws from ``draft`` until a rejection is likely.

    Drafting stops if the predicted probability that one of the drafts is rejected is above ``threshold``.
    """

    def propose(draws: Draws, _: Hashable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        all_accepted: Any = 1
        while len(drafted) < gamma:
            q = draft(prefix + drafted)
            if drafted:
                all_accepted = all_accepted * pmfs[-1][drafted[-1]]
            drafted, pmfs = (*drafted, draws.categorical(q, ("draft", len(drafted)))), (*pmfs, q)
            if 1 - all_accepted > parameter(threshold, q):
                break
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)


@from_parts
def build(task: Task, threshold: Any = Fraction(7, 10), gamma: int = 20) -> Parts:
    """Return the decoder that drafts at most ``gamma`` tokens and stops earlier if a rejection is predicted.

    Drafting stops if the predicted probability that one of the drafts is rejected is above ``threshold``.
    """
    return Parts(predicting_drafter(draft_model(task), threshold), constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="specdec-pp",
    summary="speculative sampling; drafting ends when 1 - the product of predicted acceptances is above a threshold",
    build=build,
    claims=frozenset(Claim),
    examples=({"threshold": Fraction(1, 2), "gamma": 2}, {"threshold": Fraction(1, 2), "gamma": 3}),
    paper="arXiv 2405.19715; code: Kaffaljidhmah2/SpecDec_pp 9c52edc, specdec_pp/hf_generation.py",
    systems=("SpecDec++",),
    needs_training="the head that predicts acceptance",
    reductions=(Reduction("speculative-sampling", "threshold = 1", {"threshold": 1, "gamma": 2}, {"gamma": 2}),),
)
