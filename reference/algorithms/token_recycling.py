"""Token Recycling: a tree of tokens that were probable under the target earlier (Luo et al. 2408.08696).

The matrix of tokens and the template of the tree are those of the released code (``drafters.recycled``), which matches
greedily. As candidate sets they are exact at every temperature, which is claimed here.
"""

from __future__ import annotations

from ..drafters.recycled import recycling_drafter
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task, Tokens
from ..verifiers.candidate_set import candidate_set

SMALL: tuple[Tokens, ...] = ((0,), (1,), (0, 0))


def build(task: Task, template: tuple[Tokens, ...] = SMALL, width: int = 8) -> Decoder:
    """Return the decoder that fills the tree ``template`` from the matrix of tokens.

    A node of ``template`` is a path of ranks, each below ``width``.
    """
    return tree_decoder(task, recycling_drafter(template, width), candidate_set)


ALGORITHM = Algorithm(
    name="token-recycling",
    summary="a template filled with the target's last top tokens behind each token, as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"template": ((0,), (1,)), "width": 2}, {"template": ((0,), (0, 0)), "width": 2}),
    paper="arXiv 2408.08696; code: Luowaterbi/TokenRecycling 1b4c05c, evaluation/inference_recycling.py",
    systems=("Token Recycling",),
    reductions=(Reduction("autoregressive", "an empty template", {"template": (), "width": 1}),),
)
