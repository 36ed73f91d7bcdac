"""LayerSkip: the first E layers and the output head draft, the whole model verifies (Elhoushi et al. 2404.16710, 4.3).

Speculative sampling with a q that is cheap because it is part of p. If the exit is at the last layer, q = p and nothing
is rejected. Not covered: that verification reuses the cache of the first E layers, and that early exits predict well,
which need a trained network and do not affect the law.
"""

from __future__ import annotations

from ..drafters.model import model_drafter
from ..drafters.self_draft import partial_model
from ..lengths.constant import constant
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.speculative_sampling import speculative_sampling


@from_parts
def build(task: Task, gamma: int = 4, exit_layer: int = 1, layers: int = 4) -> Parts:
    """Return the decoder that draws ``gamma`` drafts from an early exit of the target.

    The exit is after ``exit_layer`` of the target's ``layers`` layers.
    """
    q = partial_model(checked_model(task.target, "target"), draft_model(task), exit_layer, layers)
    return Parts(model_drafter(q), constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="layerskip",
    summary="drafts by an early exit of the target; its remaining layers verify by speculative sampling",
    build=build,
    claims=frozenset(Claim),
    examples=({"gamma": 2, "exit_layer": 1, "layers": 2}, {"gamma": 1, "exit_layer": 3, "layers": 3}),
    paper="arXiv 2404.16710, self-speculative decoding",
    systems=("LayerSkip",),
    needs_training="the training with early exits",
    reductions=(
        Reduction(
            "speculative-sampling", "the draft runs no layer", {"exit_layer": 0, "layers": 2, "gamma": 2}, {"gamma": 2}
        ),
    ),
)
