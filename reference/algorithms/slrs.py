"""SLRS, string-level rejection sampling: a target's token is accepted by the probability that the drafter spells it.

With psi(t) the probability that the drafter's text goes on with the target's token t, added up over all ways in which
its own tokens spell that, t stays with probability ``min(1, p(t)/psi(t))`` and is replaced from ``norm((p - psi)+)``
(Timor et al. 2502.05202). psi is the law of the draft as the target reads it, so the rule is speculative sampling. For
the second token on, psi is conditioned on the text before it, and not on how the drafter happened to cut it: that is
summed out here exactly (``drafters.two_vocabularies``), which real vocabularies make expensive.
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
    """Draft gamma of the target's tokens, of which the drafter spells some by one token of its own."""
    return Parts(string_law_drafter(draft_model(task), pieces), constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="slrs",
    summary="t ~ psi, the law of another vocabulary's text in one's own tokens, accepted with min(1, p/psi)",
    build=build,
    claims=frozenset(Claim),
    examples=({"pieces": ((0, (1, 0)),), "gamma": 2}, {"pieces": ((0, (0, 1)), (1, (0, 0))), "gamma": 2}),
    paper="arXiv 2502.05202, string-level rejection sampling",
    systems=("SLRS",),
    needs_training="how often two tokenizers agree",
    reductions=(Reduction("speculative-sampling", "one vocabulary", {"gamma": 2}, {"gamma": 2}),),
)
