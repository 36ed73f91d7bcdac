"""K-SEQ, the selection rule of SpecTr for K drafted sequences.

At each position the candidates are the next tokens of those sequences that agree with the accepted tokens.
"""

from __future__ import annotations

from ..drafters.sequences import sequences_drafter
from ..models import draft_model
from ..tree_rounds import tree_decoder
from ..types import Algorithm, Claim, Decoder, Reduction, Task
from ..verifiers.k_seq import k_seq


def build(task: Task, sequences: int = 4, depth: int = 4, bits: int = 16) -> Decoder:
    """Return the decoder that drafts K = ``sequences`` sequences of ``depth`` tokens and verifies them by K-SEQ.

    A candidate x is accepted with probability ``min(1, p(x)/(rho q(x)))``. rho >= 1 is the smallest number for which
    this is lossless, approximated from above to ``bits`` binary places.
    """
    return tree_decoder(task, sequences_drafter((draft_model(task),) * sequences, depth), k_seq(bits))


ALGORITHM = Algorithm(
    name="k-seq",
    summary="K sequences; each x ~ q is tried in turn with min(1, p/(rho q)), then a draw from the remaining mass of p",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"sequences": 1, "depth": 2}, {"sequences": 2, "depth": 1, "bits": 8}),
    paper="arXiv 2310.15141, K-SEQ",
    systems=("SpecTr",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "one sequence",
            {"sequences": 1, "depth": 2},
            {"gamma": 2},
            shown_by="test_multi_draft.py::test_one_candidate_is_speculative_sampling",
        ),
    ),
)
