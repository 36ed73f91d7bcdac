"""Kangaroo: an early exit of the target drafts greedily until its confidence is low (Liu et al. 2404.18911).

The rule is that of the released code, Equationliu/Kangaroo at 4f0949d, ``evaluation/inference_kangaroo.py``. The early
exit drafts its argmax, at most 6 times. Drafting stops after a token whose probability is below the threshold; this
token stays in the block. The whole model verifies greedily. The adapter after the exit is a trained network; here the
exit is modelled as in ``layerskip``. The release writes its first token with the whole model, which does not change the
text.
"""

from __future__ import annotations

from typing import Any

from ..drafters.model import greedy_drafter
from ..drafters.self_draft import partial_model
from ..laws import greedy_law
from ..lengths.confidence import confidence
from ..limits import greedy_draft
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Reduction, Task
from ..verifiers.greedy_match import greedy_match


@from_parts
def build(task: Task, threshold: Any = 0.6, gamma: int = 6, exit_layer: int = 1, layers: int = 4) -> Parts:
    """Return the decoder that drafts at most ``gamma`` argmaxes of the target's first ``exit_layer`` layers.

    The target has ``layers`` layers. Drafting stops after a token with a probability below ``threshold``.
    """
    q = partial_model(checked_model(task.target, "target"), draft_model(task), exit_layer, layers)
    return Parts(greedy_drafter(q), confidence(threshold, gamma), greedy_match)


ALGORITHM = Algorithm(
    name="kangaroo",
    summary="an early exit drafts argmaxes until a token is below a threshold; accepted while d = argmax p",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"threshold": 0.5, "gamma": 2, "exit_layer": 1, "layers": 2},
        {"threshold": 0.4, "gamma": 3, "exit_layer": 1, "layers": 4},
    ),
    paper="arXiv 2404.18911; code: Equationliu/Kangaroo 4f0949d, evaluation/inference_kangaroo.py",
    declared_law=greedy_law,
    systems=("Kangaroo",),
    needs_training="the adapter after the early exit",
    reductions=(
        Reduction(
            "greedy-speculation",
            "the draft runs no layer, threshold = 0, q one-hot",
            {"threshold": 0, "gamma": 2, "exit_layer": 0, "layers": 2},
            {"gamma": 2},
            limit=greedy_draft,
        ),
    ),
)
