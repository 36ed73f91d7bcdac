"""DistillSpec: speculative sampling with a drafter distilled from its target (Zhou et al. 2310.08461).

Decoding is unchanged, and so is the law; distillation changes only the acceptance rate. The effect of gradient steps is
computed in ``reference.drafters.distillation``, in closed form for the paper's four divergences; the gain on real text
needs trained models. Here ``steps`` of training are modelled by a rational update at every context:

    q <- (1 - eta) q + eta p       so that  TV(p, q) shrinks by (1 - eta) a step, and the acceptance rate grows
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..drafters.changing_table import mixture_step
from ..drafters.model import model_drafter
from ..lengths.constant import constant
from ..models import draft_model
from ..pmf import checked_model
from ..rounds import from_parts
from ..types import Algorithm, Claim, LanguageModel, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.speculative_sampling import speculative_sampling


def distilled_draft(task: Task, eta: Any, steps: int) -> LanguageModel:
    """Return q after ``steps`` updates ``q <- (1 - eta) q + eta p``.

    Raises ``ValueError`` for ``eta`` outside [0, 1] or negative ``steps``.
    """
    if steps < 0:
        raise ValueError(f"steps is {steps}, expected at least 0")
    target, draft, update = checked_model(task.target, "target"), draft_model(task), mixture_step(eta)

    def distilled(tokens: Tokens) -> Pmf:
        q = draft(tokens)
        for _ in range(steps):
            q = update(q, target(tokens))
        return q

    return distilled


@from_parts
def build(task: Task, eta: Any = Fraction(1, 10), steps: int = 5, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from the distilled q, verified by speculative sampling.

    ``eta`` and ``steps`` are those of ``distilled_draft``.
    """
    drafter = model_drafter(distilled_draft(task, eta, steps))
    return Parts(drafter, constant(gamma), speculative_sampling)


ALGORITHM = Algorithm(
    name="distillspec",
    summary="speculative sampling; before decoding q is moved towards p in steps (1 - eta) q + eta p",
    build=build,
    claims=frozenset(Claim),
    examples=(
        {"eta": Fraction(1, 2), "steps": 1, "gamma": 1},
        {"eta": Fraction(1, 3), "steps": 2, "gamma": 2},
    ),
    paper="arXiv 2310.08461",
    systems=("DistillSpec",),
    needs_training="by how much training raises a network's alpha; tables show that it rises",
    reductions=(Reduction("speculative-sampling", "no step of distillation", {"steps": 0, "gamma": 2}, {"gamma": 2}),),
)
