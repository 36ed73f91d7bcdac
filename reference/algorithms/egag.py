"""EGAG: speculative sampling whose gamma follows the drafter's entropy, by ``lengths.entropy_adaptive``."""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..lengths.entropy_adaptive import entropy_adaptive
from ..models import draft_model, raw_draft_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma_min: int = 1, gamma_max: int = 8, beta: float = 0.0) -> Parts:
    """Return the decoder with a gamma between ``gamma_min`` and ``gamma_max``, larger for a smaller entropy of q.

    ``beta`` smooths gamma over rounds; with 0 there is no smoothing.
    """
    length = entropy_adaptive(raw_draft_model(task), gamma_min, gamma_max, beta)
    return Parts(model_drafter(draft_model(task)), length, speculative_sampling)


ALGORITHM = Algorithm(
    name="egag",
    summary="speculative sampling; gamma is a decreasing linear function of the entropy of q",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"gamma_min": 1, "gamma_max": 3},
        {"gamma_min": 0, "gamma_max": 3},
        {"gamma_min": 1, "gamma_max": 3, "beta": 0.5},
    ),
    paper="implementation document, Section 7 (parameters only); exact by the stopping theorem of adaptive lengths",
    systems=("EGAG",),
    reductions=(
        Reduction(
            "speculative-sampling",
            "the two bounds are equal",
            {"gamma_min": 2, "gamma_max": 2},
            {"gamma": 2},
            shown_by="test_entropy_adaptive.py::test_equal_bounds_are_plain_speculative_sampling_round_by_round",
        ),
    ),
)
