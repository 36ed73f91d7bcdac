"""EAGLE-2 and EAGLE-3: dynamic trees of the drafter's most probable paths, verified by draws from p.

The tree is that of the released code, SafeAILab/EAGLE at cb7e084, ``eagle/model/cnets.py``, ``topK_genrate``: at every
level the ``top_k`` best of all children, by the sum of log-probabilities along their path, are expanded; of all nodes
the ``total_tokens`` best are kept. The drafter is any model here; the release has one trained layer on the target's
features.
"""

from __future__ import annotations

from ..drafters.dynamic_tree import dynamic_tree_drafter
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.candidate_set import candidate_set


def build(task: Task, width: int = 4, depth: int = 4, nodes: int = 16) -> Decoder:
    """Return the decoder that expands the ``width`` best nodes per level and keeps the ``nodes`` best of all.

    The tree has at most ``depth`` levels.
    """
    return tree_decoder(task, dynamic_tree_drafter(draft_model(task), width, depth, nodes), candidate_set)


ALGORITHM = Algorithm(
    name="eagle-2",
    summary="expand the nodes most probable under q, keep the best of all; verified as candidate sets",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"width": 2, "depth": 2, "nodes": 3}, {"width": 2, "depth": 3, "nodes": 5}),
    paper="arXiv 2406.16858; arXiv 2503.01840; code: SafeAILab/EAGLE cb7e084, eagle/model/cnets.py",
    systems=("EAGLE-2", "EAGLE-3"),
    needs_training="its drafter, trained on the target's features (EAGLE-3: features of several layers, and the "
    "drafter's own outputs)",
    reductions=(Reduction("candidate-set", "one path", {"width": 1, "depth": 2, "nodes": 2}, {"branching": (1, 1)}),),
)
