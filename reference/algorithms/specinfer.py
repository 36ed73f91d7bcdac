"""SpecInfer: sequences of several drafters in one token tree, verified by multi-step speculative sampling.

Candidates of one position are drawn independently, each from its own q_k. Accepted more often than by asking whether a
draw of the target is among them (``candidate_set``), the paper's theorem, less often than by K-SEQ where q is one.
"""

from __future__ import annotations

from reference.drafters.sequences import forgetful, sequences_drafter
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.types import Algorithm, Claim, Decoder, Reduction, Task
from reference.verifiers.recursive_rejection import recursive_rejection


def build(task: Task, forget: tuple[int, ...] = (0, 1), depth: int = 4) -> Decoder:
    """Draft one sequence for each entry of ``forget``, from a drafter that does not see that many first tokens."""
    draft = draft_model(task)
    drafter = sequences_drafter(tuple(forgetful(draft, count) for count in forget), depth)
    return tree_decoder(task, drafter, recursive_rejection)


ALGORITHM = Algorithm(
    name="specinfer",
    summary="K sequences, each x ~ q_k tried in turn with min(1, r/q_k), r = norm((r - q_k)+) after a rejection",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"forget": (0, 1), "depth": 1}, {"forget": (0,), "depth": 2}),
    paper="arXiv 2305.09781, multi-step speculative sampling",
    systems=("SpecInfer",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "one sequence",
            {"forget": (0,), "depth": 2},
            {"gamma": 2},
            shown_by="test_multi_draft.py::test_one_candidate_is_speculative_sampling",
        ),
    ),
)
