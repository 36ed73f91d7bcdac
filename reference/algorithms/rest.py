"""REST: retrieved continuations as a candidate tree, verified by one target draw per position, as in the paper.

The nucleus mode of the released code draws once per path and again after the last match, which is biased.
"""

from __future__ import annotations

from ..drafters.retrieval import retrieval_drafter
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task, Tokens
from ..verifiers.candidate_set import candidate_set


def build(task: Task, datastore: tuple[Tokens, ...] = (), longest: int = 4, depth: int = 4, nodes: int = 16) -> Decoder:
    """Return the decoder that drafts tokens which followed the last tokens of the text at other positions.

    Suffixes of up to ``longest`` tokens are looked up in ``datastore`` and in the text so far; the tree has at most
    ``nodes`` nodes and ``depth`` levels.
    """
    return tree_decoder(task, retrieval_drafter(datastore, longest, depth, nodes), candidate_set)


ALGORITHM = Algorithm(
    name="rest",
    summary="the most frequent continuations of the longest suffix found; verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"longest": 1, "depth": 2, "nodes": 2},
        {"datastore": ((0, 1, 1, 0, 0), (1, 0, 1)), "longest": 2, "depth": 3, "nodes": 5},
    ),
    paper="arXiv 2311.08252",
    systems=("REST",),
    reductions=(Reduction("autoregressive", "depth = 0", {"depth": 0}),),
)
