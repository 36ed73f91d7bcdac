"""SLRS, string-level rejection sampling: accept a target token by the probability that the drafter spells it.

The drafter has its own vocabulary. Let psi(t) be the probability that its text continues with the target token t: the
sum over all sequences of drafter tokens that spell t. t is accepted with probability ``min(1, p(t)/psi(t))`` and
replaced by a draw from ``norm((p - psi)+)`` (Timor et al. 2502.05202). psi is the law of the draft in target tokens, so
the rule is speculative sampling.

From the second draft on, psi is conditioned on the text before it. The drafter may have spelled this text by several
token sequences, and psi is a sum over all of them (``drafters.two_vocabularies``). This is exact, but expensive for
real vocabularies.
"""

from __future__ import annotations

from ..drafters.two_vocabularies import Pieces, string_law_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, pieces: Pieces = (), gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` target tokens and verifies them by speculative sampling.

    The q of a target token is the probability that the drafter spells it. ``pieces`` are the drafter's tokens that
    stand for several target tokens.
    """
    return Parts(string_law_drafter(draft_model(task), pieces), constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="slrs",
    summary="drafts have the law psi of text with another vocabulary in tokens of the target; accepted with "
    "min(1, p/psi)",
    build=build,
    claims=frozenset(Claim),
    examples=({"pieces": ((0, (1, 0)),), "gamma": 2}, {"pieces": ((0, (0, 1)), (1, (0, 0))), "gamma": 2}),
    paper="arXiv 2502.05202, string-level rejection sampling",
    systems=("SLRS",),
    needs_training="how often two tokenizers agree",
    reductions=(Reduction("speculative-sampling", "both models have the same vocabulary", {"gamma": 2}, {"gamma": 2}),),
)
