"""Greedy multi-draft: a node's K children are the K - 1 most probable tokens of q and one drawn from the rest of q.

Recursive rejection tries the drawn child first. Then a child is accepted with ``p(T) + sum over v outside T of min(p,
q')``, where T are the K - 1 most probable tokens and q' is q without T, normalised. No lossless verifier accepts more
for these drafts. If T is tried first, the verifier is lossless too, but accepts less.
"""

from __future__ import annotations

from ..drafters.tree import sampled_then_most_likely, tree_drafter
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..trees import regular_tree
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.recursive_rejection import recursive_rejection


def build(task: Task, branching: tuple[int, ...] = (3, 2, 1)) -> Decoder:
    """Return the decoder of trees in which one child of a node is drawn, and the others are q's most probable tokens.

    The root has ``branching[0]`` children, each of these has ``branching[1]`` children, and so on.
    """
    drafter = tree_drafter(draft_model(task), regular_tree(branching), sampled_then_most_likely)
    return tree_decoder(task, drafter, recursive_rejection)


ALGORITHM = Algorithm(
    name="greedy-multi-draft",
    summary="candidates are one x ~ q without its top K - 1 tokens, tried first, and these tokens as point masses",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"branching": (2, 2)}, {"branching": (3,)}),
    paper="arXiv 2502.18779, greedy draft sampling",
    reductions=(
        Reduction(
            "speculative-sampling",
            "one child per node",
            {"branching": (1, 1)},
            {"gamma": 2},
            shown_by="test_multi_draft.py::test_a_tree_of_one_path_is_a_chain",
        ),
    ),
)
