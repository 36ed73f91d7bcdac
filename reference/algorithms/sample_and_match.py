"""Sampled drafts verified by sample-and-match, as in assisted generation that does not keep the draft's pmf.

The draft never influences the output, so the algorithm is lossless for every drafter. A draft d ~ q is accepted with
probability ``sum p q``, at most the ``sum min(p, q)`` of speculative sampling.
"""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.constant import constant
from ..limits import greedy_target
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and emits draws from p while they equal the drafts."""
    return Parts(model_drafter(draft_model(task)), constant(gamma), sample_and_match)


ALGORITHM = Algorithm(
    name="sample-and-match",
    summary="d ~ q; draw z ~ p, emit z, and continue while z = d",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="assisted generation without draft logits; the sampling baseline of arXiv 2309.08168",
    systems=("assisted generation",),
    reductions=(
        Reduction("autoregressive", "gamma = 0", {"gamma": 0}),
        Reduction("greedy-speculation", "p one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_target),
    ),
)
