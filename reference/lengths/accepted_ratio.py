"""Dynamic k: draft one token more after a good round, one fewer after a bad one (the edge-cloud guide's la/k rule).

la/k is the share of accepted drafts. Only past rounds decide, so the rule is exact. At a constant acceptance rate the
share falls as k grows, so k does not settle at a length that the acceptance rate alone determines.
"""

from __future__ import annotations

from ..parameters import exact
from ..types import LengthRule, Plan, never
from ..validation import is_number
from .constant import check_gamma


def accepted_ratio(
    start: int = 6, minimum: int = 3, maximum: int = 12, low: float = 0.4, high: float = 0.8
) -> LengthRule:
    """Return the rule whose k grows by 1 if accepted/drafted >= ``high`` and shrinks by 1 if it is <= ``low``.

    k is ``start`` at first and stays within [``minimum``, ``maximum``]. A round without drafts changes nothing. Raises
    ``ValueError`` for bounds out of order, and for shares that are no numbers in order.
    """
    for value, name in ((start, "start"), (minimum, "minimum"), (maximum, "maximum")):
        check_gamma(value, name)
    if not minimum <= start <= maximum:
        raise ValueError(f"start is {start}, expected a length within [{minimum}, {maximum}]")
    if not (is_number(low) and is_number(high) and 0 <= low < high <= 1):
        raise ValueError(f"low is {low} and high is {high}, expected 0 <= low < high <= 1")

    def update(k: int, drafted: int, accepted: int) -> int:
        few, many = exact(low) * drafted, exact(high) * drafted
        if drafted == 0 or few < accepted < many:
            return k
        return min(k + 1, maximum) if accepted >= many else max(k - 1, minimum)

    return LengthRule(init=start, plan=lambda k, prefix: Plan(k, k, (("k", k),)), stop_after=never, update=update)
