"""Typical acceptance of a chain (Medusa, Cai et al. 2401.10774, Section 2.3.1): accept d iff p(d) is large enough.

    p(d) > min(epsilon, delta exp(-H(p)))         H in nats; the paper has epsilon = .09 and delta = sqrt(epsilon)

The token after the accepted drafts is the argmax of the target, in the paper and in the release at its default
(FasterDecoding/Medusa at e2a5d20, ``medusa/model/utils.py``: ``generate_candidates`` and ``evaluate_posterior`` with
``fast=True``), also at temperature > 0. The release's other mode is ``typical-sampling-released``.

If p has fractions, epsilon becomes a simple fraction (.09 becomes 9/100), and the second bound is one float64;
both are compared with p(d) exactly. The release adds 1e-5 inside the logarithm, which only matters for tokens below
that. The paper's candidates are a tree of top tokens of several heads; here the draft is a chain drawn from q.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..limits import greedy_target
from ..models import draft_model
from ..parameters import parameter
from ..pmf import point_on_argmax
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace


def typical_threshold(p: Pmf, epsilon: float, delta: float) -> Any:
    """Return ``min(epsilon, delta exp(-H(p)))``: a ``Fraction`` if p has fractions, else a float.

    Raises ``ValueError`` unless both parameters are in [0, 1].
    """
    for value, name in ((epsilon, "epsilon"), (delta, "delta")):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} is {value}, expected a number in [0, 1]")
    entropy = -math.fsum(mass * math.log(mass) for mass in map(float, p.tolist()) if mass > 0)
    bound = float(delta) * math.exp(-entropy)
    return min(parameter(epsilon, p), Fraction(bound) if p.dtype == object else bound)


@from_parts
def build(task: Task, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and accepts them while p(d) is above the threshold.

    The threshold is ``min(epsilon, delta exp(-H(p)))``.
    """
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: int(p[token] > typical_threshold(p, epsilon, delta)),
        replacement=lambda p, q, token: point_on_argmax(p),
        bonus=point_on_argmax,
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(
    task: Task, prompt: Tokens, epsilon: float = 0.09, delta: float = 0.3, gamma: int = 4
) -> dict[Tokens, Any]:
    """Return the law that the algorithm promises, new tokens -> probability; the options are those of ``build``."""

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        kept = q * (p > typical_threshold(p, epsilon, delta))
        return kept.tolist(), ((q - kept).sum() * point_on_argmax(p)).tolist()

    return chain_law(task, prompt, gamma, position, bonus=point_on_argmax)


ALGORITHM = Algorithm(
    name="typical-acceptance",
    summary="accept d while p(d) > min(epsilon, delta e^-H), then emit the argmax (declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=(
        {"epsilon": 0.4, "delta": 0.8, "gamma": 2},
        {"epsilon": 0.25, "delta": 0.8, "gamma": 2},
    ),
    paper="arXiv 2401.10774, Section 2.3.1",
    declared_law=declared_law,
    systems=("Medusa",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(Reduction("greedy-speculation", "p one-hot", {"gamma": 2}, {"gamma": 2}, limit=greedy_target),),
)
