"""Sequoia: a tree of optimal shape, siblings without replacement, recursive rejection sampling.

Where q runs out of tokens no further sibling is drafted. Sequoia is said to go on with the uniform law over the tokens
left, which could not be confirmed from the paper; its released code masks what was drawn.
"""

from __future__ import annotations

from typing import Any

from reference.drafters.sequoia_tree import sequoia_tree
from reference.drafters.tree import tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.types import Algorithm, Claim, Decoder, Reduction, Task
from reference.verifiers.recursive_rejection import recursive_rejection


def build(task: Task, acceptance: tuple[Any, ...] = (0.6, 0.2, 0.1), size: int = 8, depth: int = 4) -> Decoder:
    """Draft the best tree of ``size`` nodes, root included, for measured positional ``acceptance``."""
    parents = sequoia_tree(acceptance, size, depth).parents
    return tree_decoder(task, tree_drafter(draft_model(task), parents, without_replacement), recursive_rejection)


ALGORITHM = Algorithm(
    name="sequoia",
    summary="the tree with most expected tokens by dynamic programming, then as rsd",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"acceptance": (0.6, 0.3), "size": 4, "depth": 2},),
    paper="arXiv 2402.12374, tree construction and verification",
    systems=("Sequoia",),
    needs_training="the acceptance of the k-th child, which plans the tree",
    reductions=(
        Reduction(
            "speculative-sampling",
            "only first children are ever accepted",
            {"acceptance": (0.5,), "size": 3, "depth": 2},
            {"gamma": 2},
        ),
    ),
)
