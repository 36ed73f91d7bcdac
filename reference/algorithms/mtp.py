"""Multi-token prediction: modules in sequence, each with its own weights (DeepSeek-V3, 2412.19437, Section 2.2).

Module i reads the state of module i - 1 and the token before its own, so it depends on the text and all earlier drafts.
Here module i returns q after the text and these drafts, of which the first i tokens are left out. So the modules
differ, as trained ones do. One module is ``speculative-sampling`` with its q and gamma 1. The parallel heads of
2404.19737 read less: they are ``medusa-heads``.
"""

from __future__ import annotations

from ..drafters.head_chain import dependent_head, head_chain_drafter
from ..drafters.sequences import forgetful
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 1) -> Parts:
    """Return the decoder that drafts one token from each of ``gamma`` modules."""
    draft, length = draft_model(task), constant(gamma)
    modules = [dependent_head(forgetful(draft, i)) for i in range(gamma)]
    return Parts(head_chain_drafter(modules), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="mtp",
    summary="d_i ~ q_i(. | text, d_<i) from gamma modules in sequence; accepted with min(1, p/q_i)",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 1}, {"gamma": 2}),
    paper="arXiv 2404.19737; arXiv 2412.19437, Section 2.2",
    systems=("MTP",),
    needs_training="how often its modules are right",
    reductions=(
        Reduction(
            "speculative-sampling",
            "one module",
            {"gamma": 1},
            {"gamma": 1},
            shown_by="test_head_chain.py::test_one_module_of_multi_token_prediction_is_speculative_sampling_of_one_draft",
        ),
    ),
)
