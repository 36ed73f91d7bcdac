"""SpecInfer: sequences of several drafters in one token tree, verified by multi-step speculative sampling.

The candidates of one position are drawn independently, each from the q_k of its own drafter. They are tried in random
order: Algorithm 2, line 29, picks the next sibling uniformly among those left. With different q_k the order changes the
acceptance but not the law: for p = (.2, .3, .5), q_1 = (.6, .3, .1), q_2 = (.1, .1, .8) the acceptance is 23/25, in the
other order 89/100, and 181/200 in random order.

If all q_k are equal, the acceptance lies between two other rules. It is higher than that of ``candidate_set``, which
draws from the target and looks the draw up among the candidates (the paper's theorem). It is lower than that of K-SEQ.
"""

from __future__ import annotations

from ..drafters.sequences import forgetful, sequences_drafter
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.recursive_rejection import in_random_order


def build(task: Task, forget: tuple[int, ...] = (0, 1), depth: int = 4) -> Decoder:
    """Return the decoder that drafts one sequence of ``depth`` tokens for each entry of ``forget``.

    For the entry n, the drafter of the sequence does not see the first n tokens of the text.
    """
    draft = draft_model(task)
    drafter = sequences_drafter(tuple(forgetful(draft, count) for count in forget), depth)
    return tree_decoder(task, drafter, in_random_order)


ALGORITHM = Algorithm(
    name="specinfer",
    summary="K sequences; each x ~ q_k is tried in random order with min(1, r/q_k), then r = norm((r - q_k)+)",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"forget": (0, 1), "depth": 1}, {"forget": (0,), "depth": 2}),
    paper="arXiv 2305.09781, Algorithm 2 (multi-step speculative sampling)",
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
