"""RSD with constant branching: siblings drawn without replacement, verified by recursive rejection sampling.

EAGLE (arXiv 2401.15077) verifies its trees in this way. Its first release reduced only the rejected entry of the
residual instead of subtracting all of q, which is biased.
"""

from __future__ import annotations

from ..drafters.tree import tree_drafter, without_replacement
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..trees import regular_tree
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.recursive_rejection import recursive_rejection


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """Return the decoder of trees whose siblings are drawn without replacement.

    The root has ``branching[0]`` children, each of these has ``branching[1]`` children, and so on.
    """
    drafter = tree_drafter(draft_model(task), regular_tree(branching), without_replacement)
    return tree_decoder(task, drafter, recursive_rejection)


ALGORITHM = Algorithm(
    name="rsd",
    summary="siblings are drawn without replacement, q_k = norm(q without earlier siblings); recursive rejection",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"branching": (2,)}, {"branching": (1, 2)}),
    paper="arXiv 2402.14160, RSD-C; arXiv 2401.15077",
    systems=("RSD-C", "EAGLE-1"),
    needs_training="EAGLE's drafter, one layer trained on the target's features",
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
