"""A confidence threshold that follows the acceptance rate (Draft&Verify, 2309.08168, Section 3.3).

As in the released code, drafting stops after a token with q(token) below the threshold th, and this token is kept.
After a round with drafts, with target rate a:

    m  <- b1 m + (1 - b1) accepted/drafted
    th' = th + eps if m < a, else th - eps;   th if m >= a and the draft was as long as allowed
    th <- b2 th + (1 - b2) th'

Only past rounds change the threshold, and the token that stops the draft is kept, so the rule is exact. The defaults
are those of the released code, (b1, a, eps, b2) = (.5, .9, .01, .9).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..types import LengthRule
from .confidence import confidence


class Threshold(NamedTuple):
    """The threshold (``value``), and the moving average over rounds of accepted / drafted (``matched``)."""

    value: Any
    matched: Any = 0


class Schedule(NamedTuple):
    """The parameters of the threshold's update after a round, by the formulas of the module's docstring.

    ``keep_rate`` is b1, the weight of earlier rounds in the moving average of the acceptance rate; ``aim`` is the
    target rate a; ``step`` is eps, the size of a change; ``keep_threshold`` is b2, the weight of the old threshold in
    the new one.
    """

    keep_rate: Any = 0.5
    aim: Any = 0.9
    step: Any = 0.01
    keep_threshold: Any = 0.9


def threshold_after(state: Threshold, schedule: Schedule, drafted: int, accepted: int, gamma: int) -> Threshold:
    """Return the threshold that follows ``state`` after a round that accepted ``accepted`` of ``drafted`` tokens.

    The threshold is unchanged if nothing was drafted. ``schedule`` has the parameters of the update, and ``gamma`` is
    the largest number of drafts.
    """
    if drafted == 0:
        return state
    b1, aim, step, b2 = schedule
    matched = b1 * state.matched + (1 - b1) * accepted / drafted
    value = state.value
    if matched < aim:
        value = value + step
    elif drafted < gamma:
        value = value - step
    return Threshold(b2 * state.value + (1 - b2) * value, matched)


def adaptive_threshold(now: Threshold, start: Threshold, schedule: Schedule, gamma: int) -> LengthRule:
    """Return the length rule of one round: drafting stops after a token with q(token) below the threshold ``now``.

    The threshold changes from round to round, so each round needs a new rule. The state of the rule is the threshold of
    the next round: ``start`` at first, changed by ``schedule`` after each round. Raises ``ValueError`` for a negative
    gamma or shares outside [0, 1] in ``schedule``.
    """
    if not all(0 <= share <= 1 for share in (schedule.keep_rate, schedule.aim, schedule.keep_threshold)):
        raise ValueError(f"the schedule is {tuple(schedule)}, expected shares in [0, 1] but for the step")
    below = confidence(min(max(now.value, 0), 1), gamma)
    return below._replace(
        init=start,
        update=lambda state, drafted, accepted: threshold_after(state, schedule, drafted, accepted, gamma),
    )
