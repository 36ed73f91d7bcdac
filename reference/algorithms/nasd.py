"""NASD in its lossless form: n-gram drafts verified by sample-and-match.

The NASD theory document accepts by argmax and samples otherwise, which is biased (see ``nasd_seed_rule``). Emitting the
target's own draw in both cases is exact for any drafter. A guess d is accepted with probability p(d), optimal for a
point mass.
"""

from __future__ import annotations

from ..drafters.ngram import ngram_drafter, ngram_table
from ..lengths.constant import constant
from ..limits import greedy_target
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.sample_and_match import sample_and_match


@from_parts
def build(task: Task, order: int = 3, gamma: int = 4, filler_top_k: int = 1, backoff: bool = True) -> Parts:
    """Return the decoder that drafts up to ``gamma`` tokens from n-grams of length ``order``.

    ``backoff``: use shorter n-grams in an unseen context. ``filler_top_k`` above 1: the table also counts, at each
    position, the target's ``filler_top_k`` most probable tokens.
    """
    drafter = ngram_drafter(ngram_table(order, backoff), filler_top_k)
    return Parts(drafter, constant(gamma), sample_and_match)


ALGORITHM = Algorithm(
    name="nasd",
    summary="d is an n-gram draft; draw z ~ p, emit z, and continue while z = d",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"order": 2, "gamma": 1},
        {"order": 2, "gamma": 2},
        {"order": 3, "gamma": 3, "filler_top_k": 2},
        {"order": 3, "gamma": 2, "backoff": False},
    ),
    paper="NASD theory document with the sample-and-match repair; n-gram drafts as in arXiv 2404.08698",
    systems=("NASD",),
    reductions=(
        Reduction("autoregressive", "gamma = 0", {"order": 2, "gamma": 0}),
        Reduction(
            "nasd-seed-rule", "p one-hot", {"order": 2, "gamma": 2}, {"order": 2, "gamma": 2}, limit=greedy_target
        ),
    ),
)
