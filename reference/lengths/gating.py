"""Gates: signals of the drafter for its own uncertainty (the edge-cloud guide, gating; note EC in ``docs/errata.md``).

A drafted token is hard if its negative log-likelihood -ln q(token) or the entropy of q, both in nats, is above a
threshold, or if the margin between the two most probable tokens is below a threshold. The guide's default entropy of
2.5 bits is 1.733 nats.

A gate may decide how long a draft is: drafting stops after a hard token. This is exact, since the hard token is kept.
The guide also lets the edge commit a block without verification if no token in it is hard. Such a block does not have
the law of p.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from ..parameters import exact, parameter
from ..pmf import as_row
from ..types import LanguageModel, LengthRule, Plan, Pmf, Tokens
from ..validation import check_callable
from .constant import check_gamma, constant


class Gate(NamedTuple):
    """Thresholds of three signals by which a drafted token is hard; None switches a signal off.

    A token is hard if -ln q(token) is above ``nll``, or the entropy of q above ``entropy``, or the margin of q below
    ``margin``.
    """

    nll: float | None = None
    entropy: float | None = None
    margin: Any = None


def is_hard(gate: Gate, q: Pmf, token: int) -> bool:
    """Return whether ``token``, drawn from q, is hard by one of the gate's signals."""
    return (
        (gate.nll is not None and -math.log(q[token]) > gate.nll)
        or (gate.entropy is not None and entropy(q) > gate.entropy)
        or (gate.margin is not None and bool(margin(q) < parameter(gate.margin, q)))
    )


def entropy(q: Pmf) -> float:
    """Return ``-sum q ln q`` in nats. Raises ``ValueError`` if ``q`` is no row of numbers."""
    return -math.fsum(float(mass) * math.log(mass) for mass in as_row(q, "q").tolist() if mass > 0)


def margin(q: Pmf) -> Any:
    """Return the largest entry of ``q`` minus the second largest; a vocabulary of one token has margin 1.

    Raises ``ValueError`` if ``q`` is no row of numbers.
    """
    first, second = sorted((0, *as_row(q, "q").tolist()), reverse=True)[:2]
    return first - second


def gated(gate: Gate, gamma: int) -> LengthRule:
    """Return the rule: draft at most ``gamma`` tokens, and stop after one that is hard by the ``gate``."""
    return constant(gamma)._replace(stop_after=lambda q, token: is_hard(gate, q, token))


def hard_ratio(draft: LanguageModel, gate: Gate, block: int, most: Any, gamma: int) -> LengthRule:
    """Return the rule: draft ``gamma`` tokens, or none if too many of the last ``block`` tokens are hard by ``gate``.

    Too many means more than the share ``most``. The first token of a text is not counted. Raises ``ValueError`` for a
    block below 1, or a ``draft`` that is no callable.
    """
    check_callable(draft, "draft")
    check_gamma(gamma, "gamma")
    if block < 1:
        raise ValueError(f"block is {block}, expected at least 1 (the tokens that are looked back on)")

    def share(prefix: Tokens) -> Fraction:
        places = range(max(len(prefix) - block, 1), len(prefix))
        rows = [(draft(prefix[:place]), prefix[place]) for place in places]
        hard = [q[token] == 0 or is_hard(gate, q, token) for q, token in rows]
        return Fraction(sum(hard), len(hard)) if hard else Fraction(0)

    def plan(state: None, prefix: Tokens) -> Plan:
        result = share(prefix)
        return Plan(0 if result > exact(most) else gamma, state, (("hard_ratio", float(result)),))

    return constant(gamma)._replace(plan=plan)


def dropout_variance(passes: Sequence[LanguageModel], most: Any, gamma: int) -> LengthRule:
    """Return the rule: draft nothing if the ``passes`` of the drafter disagree, else ``gamma`` tokens.

    The passes are fixed models: the drafter with different units dropped out. Drafts are not drawn from them. They
    disagree if the variance of their pmfs, averaged over tokens, is above ``most``. Raises ``ValueError`` without
    passes, or for one that is no callable.
    """
    check_gamma(gamma, "gamma")
    if not passes:
        raise ValueError("there are no passes, expected at least one drafter with dropout")
    for model in passes:
        check_callable(model, "a pass")

    def disagree(prefix: Tokens) -> bool:
        rows = [model(prefix) for model in passes]
        mean = sum(rows) / len(rows)
        variance = sum(((row - mean) ** 2).sum() for row in rows) / (len(rows) * len(mean))
        return bool(variance > parameter(most, mean))

    return constant(gamma)._replace(plan=lambda state, prefix: Plan(0 if disagree(prefix) else gamma, state))
