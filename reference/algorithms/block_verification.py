"""Speculative sampling verified block by block (Sun et al. 2403.10444): lossless, accepts more than token by token.

With one draft it is ``speculative-sampling``. It does not claim an optimal coupling at each position: it accepts the
first i drafts more often than the product of ``min(1, p/q)``, because an earlier p/q above 1 compensates for a later
one below 1.
"""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.block_verification import block_verification


@from_parts
def build(task: Task, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and verifies them jointly."""
    return Parts(model_drafter(draft_model(task)), constant(gamma), block_verification)


ALGORITHM = Algorithm(
    name="block-verification",
    summary="accept the longest prefix allowed by its joint ratio w, then emit from norm((w p - q)+)",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"gamma": 2}, {"gamma": 3}),
    paper="arXiv 2403.10444, Algorithm 2",
    reductions=(
        Reduction(
            "speculative-sampling",
            "gamma = 1",
            {"gamma": 1},
            {"gamma": 1},
            shown_by="test_block_verification.py::test_a_block_of_one_is_speculative_sampling_and_an_empty_one_is_the_target",
        ),
    ),
)
