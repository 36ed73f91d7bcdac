"""BanditSpec: speculative sampling whose draft length is chosen by a multi-armed bandit (Hou et al. 2505.15141).

The bandit is the one of the released code (``lengths.bandit``), with a modelled time instead of a measured one. The
release verifies by argmax only; choosing the length from past rounds is exact for any verifier, and here the verifier
is speculative sampling.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..drafters.model import model_drafter
from ..lengths.bandit import bandit
from ..models import draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, arms: int = 4, tries: int = 2, cost: Any = Fraction(1, 10)) -> Parts:
    """Return the decoder that drafts 1 to ``arms`` tokens; a bandit chooses the number.

    At the beginning each number is used in ``tries`` rounds, the number ``arms`` in one round fewer. ``cost`` is the
    time of a draft relative to a target call.
    """
    return Parts(model_drafter(draft_model(task)), bandit(arms, tries, Fraction(cost)), speculative_sampling)


ALGORITHM = Algorithm(
    name="bandit-spec",
    summary="speculative sampling; gamma is the length with most tokens per time in past rounds",
    build=build,
    claims=frozenset(Claim),
    examples=({"arms": 2, "tries": 2}, {"arms": 3, "tries": 1, "cost": Fraction(1, 2)}),
    paper="arXiv 2505.15141; code: sail-sg/BanditSpec 4e6dd86, generate_utils.py",
    systems=("BanditSpec",),
    needs_training="the best length on real hardware",
    reductions=(Reduction("speculative-sampling", "one length to choose from", {"arms": 1}, {"gamma": 1}),),
)
