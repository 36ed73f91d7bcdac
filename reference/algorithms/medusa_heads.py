"""Medusa's heads as a chain: their tokens are drawn and verified by speculative sampling, lossless at any temperature.

Heads are independent: head i reads the hidden state that predicted the last token, but neither that token nor any
draft. The tree of their top tokens is ``medusa``; the paper's typical acceptance is ``typical-acceptance``. The
parallel heads of multi-token prediction (2404.19737) draft in the same way. Trained heads are not covered; the law does
not depend on them.
"""

from __future__ import annotations

from ..drafters.head_chain import head_chain_drafter, independent_heads
from ..lengths.constant import constant
from ..limits import constant_draft
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 3) -> Parts:
    """Return the decoder that drafts one token from each of ``gamma`` independent heads."""
    length = constant(gamma)
    return Parts(head_chain_drafter(independent_heads(draft_model(task), gamma)), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="medusa-heads",
    summary="d_i ~ q_i from heads that do not read earlier drafts; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2401.10774, Section 2.1, with speculative sampling; arXiv 2404.19737, parallel heads",
    systems=("Medusa",),
    needs_training="how often its heads are right",
    reductions=(
        Reduction(
            "speculative-sampling",
            "q does not depend on the text",
            {"gamma": 2},
            {"gamma": 2},
            limit=constant_draft,
            shown_by="test_head_chain.py::test_one_independent_head_is_speculative_sampling_with_the_head_as_q",
        ),
    ),
)
