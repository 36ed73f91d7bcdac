"""Stop drafting at the first token that the drafter itself finds unlikely, and keep that token.

Draft&Verify (2309.08168) does so, and the confidence schedule of assisted generation. The rule is exact because the
token is kept: dropping a token because of its own probability conditions the draft on what was drawn, and the output is
biased.
"""

from __future__ import annotations

from typing import Any

from ..parameters import parameter
from ..types import LengthRule, Plan
from ..validation import check_number
from .constant import check_gamma


def confidence(threshold: Any, gamma: int) -> LengthRule:
    """Return the rule: draft at most ``gamma`` tokens, and stop after a token with q(token) < ``threshold``.

    Raises ``ValueError`` unless 0 <= threshold <= 1.
    """
    check_gamma(gamma, "gamma")
    check_number(threshold, "threshold", "a probability", lambda value: 0 <= value <= 1)
    return LengthRule(
        init=None,
        plan=lambda state, prefix: Plan(gamma, state),
        stop_after=lambda q, token: bool(q[token] < parameter(threshold, q)),
        update=lambda state, drafted, accepted: state,
    )
