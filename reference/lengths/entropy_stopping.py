"""Stop drafting after a token that was drawn at high entropy of q, and keep that token.

SVIP (Zhang et al. 2411.18462; Geralt-Targaryen/SVIP at 0cd912e, ``vanilla-sd/eval_specbench.py``, ``generate``) stops
after a draft with ``sqrt(scale H(q))`` above a threshold; its scale is .15. AdaEDL (2410.18351) stops if ``1 -
sqrt(scale H(q))``, a lower bound of the acceptance, is below a threshold. The rule is exact for two reasons: the
entropy depends on q and not on the drawn token, and the token is kept. H is in nats, computed in float64.
"""

from __future__ import annotations

import math

from ..types import LengthRule, Plan
from ..validation import check_number
from .constant import check_gamma
from .gating import entropy


def entropy_stopping(threshold: float, scale: float, gamma: int) -> LengthRule:
    """Return the rule: draft at most ``gamma`` tokens, and stop after one with ``sqrt(scale H(q)) > threshold``.

    Raises ``ValueError`` for a negative scale, or a threshold that is no number.
    """
    check_gamma(gamma, "gamma")
    check_number(scale, "scale", "a factor >= 0 of the entropy", lambda value: value >= 0)
    check_number(threshold, "threshold", "a number", lambda value: True)
    return LengthRule(
        init=None,
        plan=lambda state, prefix: Plan(gamma, state),
        stop_after=lambda q, token: math.sqrt(scale * max(entropy(q), 0.0)) > threshold,
        update=lambda state, drafted, accepted: state,
    )
