"""Deterministic candidate trees: the drafter's most probable tokens at every node, verified by draws from p."""

from __future__ import annotations

from ..drafters.tree import most_likely, tree_drafter
from ..limits import greedy_draft
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..trees import regular_tree
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.candidate_set import candidate_set


def build(task: Task, branching: tuple[int, ...] = (3, 2, 1)) -> Decoder:
    """Return the decoder of trees whose nodes have the most probable tokens of q as children.

    The root has ``branching[0]`` children, each of these has ``branching[1]`` children, and so on.
    """
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), most_likely), candidate_set)


ALGORITHM = Algorithm(
    name="candidate-set",
    summary="a top-k tree of q; draw z ~ p at each node, emit z, and continue while z is a child",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"branching": (2,)}, {"branching": (3, 2, 1)}, {"branching": (2, 2)}),
    paper="the exact rule behind EAGLE-2 (2406.16858), REST (2311.08252) and Medusa (2401.10774)",
    reductions=(
        Reduction(
            "sample-and-match",
            "one path, q one-hot",
            {"branching": (1, 1)},
            {"gamma": 2},
            limit=greedy_draft,
            shown_by="test_multi_draft.py::test_a_path_of_point_masses_is_sample_and_match",
        ),
    ),
)
