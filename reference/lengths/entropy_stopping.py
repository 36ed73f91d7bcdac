"""Stop drafting after a token whose pmf had a high entropy, and keep that token.

SVIP (Zhang et al. 2411.18462; Geralt-Targaryen/SVIP at 0cd912e, ``vanilla-sd/eval_specbench.py``, ``generate``) stops
after a draft where ``sqrt(scale H(q))`` is above a threshold, scale .15; AdaEDL (2410.18351) where the same root's
complement, a lower bound of the acceptance, is below one. The entropy is a function of q and not of the draw,
and the token is kept besides: exact twice over. H is in nats, one float64.
"""

from __future__ import annotations

import math

from ..types import LengthRule, Plan
from .constant import check_gamma
from .gating import entropy


def entropy_stopping(threshold: float, scale: float, gamma: int) -> LengthRule:
    """Draft at most gamma tokens, none after one with ``sqrt(scale H(q)) > threshold``.

    Raises ``ValueError`` for a negative scale.
    """
    check_gamma(gamma, "gamma")
    if not scale >= 0:
        raise ValueError(f"scale is {scale}, expected a factor >= 0 of the entropy")
    return LengthRule(
        init=None,
        plan=lambda state, prefix: Plan(gamma, state),
        stop_after=lambda q, token: math.sqrt(scale * max(entropy(q), 0.0)) > threshold,
        update=lambda state, drafted, accepted: state,
    )
