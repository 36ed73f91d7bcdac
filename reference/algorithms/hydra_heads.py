"""Hydra's heads as a chain: head i also reads the drafts before its own (Ankner et al. 2402.05109, Section 3).

Heads that depend on the earlier drafts form an autoregressive drafter. Here every head is the draft model q, applied to
the text and the earlier drafts. So the algorithm is ``speculative-sampling`` with as many drafts as heads. With q = p
nothing is rejected, which independent heads cannot achieve.
"""

from __future__ import annotations

from ..drafters.head_chain import dependent_head, head_chain_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 3) -> Parts:
    """Return the decoder that drafts one token from each of ``gamma`` heads."""
    length = constant(gamma)
    return Parts(head_chain_drafter((dependent_head(draft_model(task)),) * gamma), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="hydra-heads",
    summary="d_i ~ q_i(. | text, d_<i) from gamma heads; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2402.05109, with speculative sampling; code: zankner/Hydra 3f39fbd, hydra_heads/mlp_head.py",
    systems=("Hydra",),
    needs_training="how often its heads are right",
    reductions=(
        Reduction(
            "speculative-sampling",
            "all heads are the same q",
            {"gamma": 2},
            {"gamma": 2},
            shown_by="test_head_chain.py::test_dependent_heads_of_one_q_are_speculative_sampling_with_it",
        ),
    ),
)
