"""The transport optimum: K candidates at each position, verified by an optimal transport plan.

At a single position, no lossless rule has a higher acceptance for candidates with this law. Position by position the
rule is not optimal for a whole draft: with one candidate at each of two positions, p = (1/3, 2/3) and q = (2/3, 1/3),
it accepts 10/9 drafts on average, and ``block-verification`` accepts 11/9.

Global Resolution (arXiv 2511.15898) computes an optimal plan for independent candidates of large vocabularies, by
convex minimisation, to any accuracy. Every optimal plan accepts as often as the plan computed here.
"""

from __future__ import annotations

from ..drafters.tree import independent, tree_drafter, without_replacement
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..trees import regular_tree
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.optimal_transport import optimal_transport


def build(task: Task, branching: tuple[int, ...] = (2, 1), replacement: bool = True) -> Decoder:
    """Return the decoder of trees that are verified by an optimal plan.

    The root has ``branching[0]`` children, each of these has ``branching[1]`` children, and so on. With ``replacement``
    siblings are drawn independently, otherwise without replacement.
    """
    pick = independent if replacement else without_replacement
    drafter = tree_drafter(draft_model(task), regular_tree(branching), pick)
    return tree_decoder(task, drafter, optimal_transport(replacement))


ALGORITHM = Algorithm(
    name="transport-optimum",
    summary="a maximum flow from the law of the candidate set to p decides which candidate is accepted",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"branching": (2,), "replacement": False}, {"branching": (2,), "replacement": True}),
    paper="arXiv 2310.15141, optimal transport with membership cost; dual in arXiv 2502.18779",
    systems=("SpecTr's optimum",),
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
