"""Traversal verification of a sampled tree, from the leaves up.

In all examined cases it accepts at least as many tokens as verification from the root down.
"""

from __future__ import annotations

from ..drafters.tree import independent, tree_drafter, without_replacement
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..trees import regular_tree
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.traversal import traversal


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1), replacement: bool = False) -> Decoder:
    """Return the decoder of trees that are verified from the leaves up.

    The root has ``branching[0]`` children, each of these has ``branching[1]`` children, and so on. With ``replacement``
    siblings are drawn independently, otherwise without replacement.
    """
    pick = independent if replacement else without_replacement
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), pick), traversal)


ALGORITHM = Algorithm(
    name="traversal-verification",
    summary="from the leaves: accept or drop the whole path of a leaf, then of its siblings, then of the parent",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"branching": (1, 1), "replacement": True}, {"branching": (2, 1), "replacement": False}),
    paper="arXiv 2505.12398",
    reductions=(
        Reduction(
            "block-verification",
            "one path",
            {"branching": (1, 1), "replacement": True},
            {"gamma": 2},
            shown_by="test_multi_draft.py::test_traversal_of_a_chain_accepts_what_block_verification_does",
        ),
        Reduction(
            "rsd",
            "one level",
            {"branching": (2,), "replacement": False},
            {"branching": (2,)},
            shown_by="test_traversal.py::test_traversal_of_one_level_is_recursive_rejection",
        ),
    ),
)
