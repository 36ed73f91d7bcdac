"""Token Recycling: a tree of tokens that were probable under the target earlier (Luo et al. 2408.08696).

A matrix has, for each token, its most probable successors when the target read it last; a template of ranks makes a
tree of them. Both are those of the released code (``drafters.recycled``), which verifies greedily. Here the nodes are
verified by draws from p, which is exact at every temperature.
"""

from __future__ import annotations

from ..drafters.recycled import recycling_drafter
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task, Tokens
from ..verifiers.candidate_set import candidate_set

SMALL: tuple[Tokens, ...] = ((0,), (1,), (0, 0))


def build(task: Task, template: tuple[Tokens, ...] = SMALL, width: int = 8) -> Decoder:
    """Return the decoder that drafts a tree of tokens which were probable under the target earlier.

    A node of ``template`` is a path of ranks: rank r is the r-th most probable successor of the token above. Ranks are
    below ``width``, the number of successors that are stored for each token.
    """
    return tree_decoder(task, recycling_drafter(template, width), candidate_set)


ALGORITHM = Algorithm(
    name="token-recycling",
    summary="a template tree, filled with the last known top tokens of the target after each token; verified as "
    "candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"template": ((0,), (1,)), "width": 2}, {"template": ((0,), (0, 0)), "width": 2}),
    paper="arXiv 2408.08696; code: Luowaterbi/TokenRecycling 1b4c05c, evaluation/inference_recycling.py",
    systems=("Token Recycling",),
    reductions=(Reduction("autoregressive", "the template has no nodes", {"template": (), "width": 1}),),
)
