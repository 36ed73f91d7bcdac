"""EGAG: gamma from the entropy of the drafter's first distribution of the round.

The documents that propose EGAG name its parameters, but no formula; this is the formula used here. Let q0 be the
drafter's distribution at temperature 1, before any truncation, at the first draft position. With H = -sum q0 ln q0 and
H_norm = H / ln V in [0, 1],

    raw    = gamma_min + (gamma_max - gamma_min) (1 - H_norm)
    smooth = raw in the first round, then beta * smooth + (1 - beta) * raw     (not rounded: rounding would freeze it)
    gamma  = floor(smooth + 1/2), clipped to [gamma_min, gamma_max]

Near the end of the text the decoder limits gamma further, which does not change ``smooth``. q0 is computed before any
token of the block is drawn, so the rule is exact. Related: AdaEDL 2410.18351, SVIP 2411.18462.
"""

from __future__ import annotations

import math

from ..pmf import check_pmf
from ..types import LanguageModel, LengthRule, Plan, Pmf, Tokens, never
from ..validation import check_callable, check_number
from .constant import check_gamma


def normalized_entropy(pmf: Pmf) -> float:
    """Return H(pmf) / ln V in [0, 1]; a vocabulary of one token has entropy 0. Raises ``ValueError`` for no pmf."""
    values = [float(value) for value in check_pmf(pmf, "the pmf").tolist()]
    if len(values) < 2:
        return 0.0
    entropy = -math.fsum(value * math.log(value) for value in values if value > 0)
    return min(max(entropy / math.log(len(values)), 0.0), 1.0)


def entropy_gamma(pmf: Pmf, gamma_min: int, gamma_max: int) -> float:
    """Return the unrounded gamma in [gamma_min, gamma_max]: larger for a smaller entropy of ``pmf``.

    Raises ``ValueError`` for no pmf, and unless 0 <= gamma_min <= gamma_max.
    """
    _check_bounds(gamma_min, gamma_max)
    return _between(gamma_min, gamma_max, normalized_entropy(pmf))


def _between(gamma_min: int, gamma_max: int, entropy: float) -> float:
    """Return gamma_max for the normalised ``entropy`` 0, gamma_min for 1, and on the line between them otherwise."""
    return gamma_min + (gamma_max - gamma_min) * (1 - entropy)


def _check_bounds(gamma_min: int, gamma_max: int) -> None:
    """Raise ``ValueError`` unless 0 <= gamma_min <= gamma_max, both integers."""
    check_gamma(gamma_min, "gamma_min")
    check_gamma(gamma_max, "gamma_max")
    if gamma_min > gamma_max:
        raise ValueError(f"gamma_min is {gamma_min} and gamma_max is {gamma_max}, expected gamma_min <= gamma_max")


def entropy_adaptive(raw_draft: LanguageModel, gamma_min: int, gamma_max: int, beta: float = 0.0) -> LengthRule:
    """Return the rule that plans each round by ``entropy_gamma`` of ``raw_draft(prefix)``, averaged over rounds.

    ``beta`` is the weight of earlier rounds in the moving average, which is the state. The trace has H_norm and the
    planned gamma. Raises ``ValueError`` unless 0 <= gamma_min <= gamma_max and 0 <= beta < 1, and if ``raw_draft`` is
    no callable; the plan raises it if a row is no pmf.
    """
    check_callable(raw_draft, "raw_draft")
    _check_bounds(gamma_min, gamma_max)
    check_number(beta, "beta", "a number in [0, 1) (0 means no smoothing)", lambda value: 0 <= value < 1)

    def plan(smooth: float | None, prefix: Tokens) -> Plan:
        entropy = normalized_entropy(raw_draft(prefix))
        raw = _between(gamma_min, gamma_max, entropy)
        smooth = raw if smooth is None else beta * smooth + (1 - beta) * raw
        gamma = min(max(math.floor(smooth + 0.5), gamma_min), gamma_max)
        return Plan(gamma, smooth, (("normalized_entropy", entropy), ("gamma", gamma)))

    return LengthRule(init=None, plan=plan, stop_after=never, update=lambda smooth, drafted, accepted: smooth)
