"""Drop the last draft if the drafter finds it unlikely, and correct the law by a residual: lossless.

``confidence-stopping`` keeps the unlikely token. Dropping it and drawing from p is biased (the planted bug
``dropped-confidence-token``); the residual of ``verifiers.drop_unlikely`` corrects the law.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..drafters.model import model_drafter
from ..lengths.confidence import confidence
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.drop_unlikely import drop_unlikely


@from_parts
def build(task: Task, threshold: Any = 0.4, gamma: int = 4) -> Parts:
    """Return the decoder that drafts at most ``gamma`` tokens.

    Drafting ends at the first token with q(token) < ``threshold``, and this token is dropped.
    """
    drafter, length = model_drafter(draft_model(task)), confidence(threshold, gamma)
    return Parts(drafter, length, drop_unlikely(threshold))


ALGORITHM = Algorithm(
    name="confidence-dropping",
    summary="drop d if q(d) is below a threshold; after a drop or rejection emit from norm((p - q 1[kept])+)",
    build=build,
    claims=frozenset({Claim.LOSSLESS, Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"threshold": Fraction(1, 3), "gamma": 2}, {"threshold": Fraction(1, 2), "gamma": 3}),
    paper="the repair of draft-exiting by dropping: (A1) of the coupling with the sub-pmf q 1[kept] as proposal",
    reductions=(
        Reduction(
            "speculative-sampling",
            "threshold = 0",
            {"threshold": 0, "gamma": 2},
            {"gamma": 2},
            shown_by="test_block_verification.py::test_dropping_nothing_is_speculative_sampling_and_dropping_everything_is_the_target",
        ),
    ),
)
