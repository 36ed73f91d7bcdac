"""Ouroboros: greedy drafts extended by phrases from a pool that verification refines, in one target pass.

Paper and release verify greedily, which is exact for any pool. Here the drafts are verified by draws from p. Phrases
depend on the past only, so this is lossless at every temperature. With an empty pool that is never filled the algorithm
would be ``candidate-set`` with one child at each node. Not covered: the benefit of phrases on real text.
"""

from __future__ import annotations

from ..drafters.phrases import phrases_drafter
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task, Tokens
from ..verifiers.candidate_set import candidate_set


def build(task: Task, depth: int = 4, length: int = 4, most: int = 3, warm: tuple[Tokens, ...] = ()) -> Decoder:
    """Return the decoder that drafts ``depth`` greedy tokens, then up to ``most`` continuations from a pool of phrases.

    A phrase has ``length`` tokens and begins with the last greedy token. ``warm`` are the phrases in the pool at the
    start.
    """
    return tree_decoder(task, phrases_drafter(draft_model(task), depth, length, most, warm), candidate_set)


ALGORITHM = Algorithm(
    name="ouroboros",
    summary="a greedy draft of q, extended by pool phrases that begin with its last token; verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"depth": 1, "length": 2, "most": 2},
        {"depth": 2, "length": 3, "most": 2, "warm": ((0, 1, 1), (1, 0, 0))},
    ),
    paper="arXiv 2402.13720; code: thunlp/Ouroboros 7dac65b, ouroboros/ouroboros.py",
    systems=("Ouroboros",),
    needs_training="how often phrases occur again",
    reductions=(
        Reduction("autoregressive", "no draft and an empty pool", {"depth": 0, "length": 9, "most": 1}, rounds=False),
    ),
)
