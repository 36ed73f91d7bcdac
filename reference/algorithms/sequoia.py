"""Sequoia: a tree of optimal shape, siblings without replacement, recursive rejection sampling (arXiv 2402.12374).

The shape of the tree is found by dynamic programming (Section 3.1). Algorithm 2 draws and verifies siblings one by one,
and removes a rejected token from q. If nothing is left of q, lines 12 to 16 make it uniform over the tokens that were
not rejected. So one of the siblings is always accepted if they are as many as the vocabulary, whatever q is. The same
holds for K siblings if q has K tokens of positive probability, among them all tokens of p (the cover property, Theorem
3.7).

The released code masks the drawn tokens. Its q is a softmax of finite logits, which becomes empty only by underflow
(Infini-AI-Lab/Sequoia at 0ff3ff7, ``Tree/SpecTree.py``, ``accept_step``).
"""

from __future__ import annotations

from typing import Any

from ..drafters.sequoia_tree import sequoia_tree
from ..drafters.tree import tree_drafter, without_replacement_then_uniform
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.recursive_rejection import recursive_rejection


def build(task: Task, acceptance: tuple[Any, ...] = (0.6, 0.2, 0.1), size: int = 8, depth: int = 4) -> Decoder:
    """Return the decoder of the best tree with ``size`` nodes, root included, and at most ``depth`` levels.

    ``acceptance[k]`` is the assumed probability that the k-th sibling is accepted.
    """
    parents = sequoia_tree(acceptance, size, depth).parents
    drafter = tree_drafter(draft_model(task), parents, without_replacement_then_uniform)
    return tree_decoder(task, drafter, recursive_rejection)


ALGORITHM = Algorithm(
    name="sequoia",
    summary="the tree with most expected accepted tokens, then as rsd; children are uniform if q is exhausted",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"acceptance": (0.6, 0.3), "size": 4, "depth": 2},),
    paper="arXiv 2402.12374, Section 3.1 and Algorithm 2",
    systems=("Sequoia",),
    needs_training="the acceptance rate of the k-th child, from which the tree is planned",
    reductions=(
        Reduction(
            "speculative-sampling",
            "only first children are ever accepted",
            {"acceptance": (0.5,), "size": 3, "depth": 2},
            {"gamma": 2},
        ),
    ),
)
