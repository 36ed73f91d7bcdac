"""Cactus: raise p at the draft within a divergence budget, lower it elsewhere, then sample speculatively (2604.04987).

The rule is that of the released code, MANGA-UOFA/Cactus at 3b01b81, ``cactus/cactus.py``, ``solve_constraint``. For a
draft d ~ q and a budget delta let

    h(d) = min(1, p(d) + sqrt(2 delta p(d) (1 - p(d)))),   h(v) = p(v) (1 - h(d))/(1 - p(d)) for all other v

d is accepted with probability ``min(1, h(d)/q(d))`` and otherwise replaced by a draw from ``norm((h - q)+)``; the bonus
comes from p. Of all pmfs h with this h(d), this one is nearest to p, and KL(h || p) is the divergence of the Bernoulli
laws with parameters h(d) and p(d). The square root solves the second-order approximation ``(h - p)^2 / (2 p (1 - p)) =
delta``: KL(h || p) itself is within delta while h(d) <= 1/2, and may exceed it otherwise (0.084 for p(d) = .9 and delta
= .05).

h depends on d, so the law of a token is a mixture over d, which ``declared_law`` computes. A token with p = 0 is never
raised, and a one-hot p is unchanged. For rationals the root is rounded down to 32 binary places, which makes the budget
smaller, never larger.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from ..coupling import accept_probability, residual
from ..drafters.model import model_drafter
from ..laws import Split, chain_law
from ..lengths.constant import constant
from ..models import draft_model
from ..parameters import parameter
from ..pmf import one_hot
from ..rounds import from_parts
from ..types import Algorithm, Claim, Parts, Pmf, Reduction, Task, Tokens
from ..verifiers.accept_or_replace import accept_or_replace

BITS = 32
"""Number of binary places to which a square root is computed, so that it stays a rational."""


def root(value: Any) -> Any:
    """Return the square root of ``value`` >= 0; for a ``Fraction`` rounded down to ``BITS`` binary places."""
    if not isinstance(value, (int, Fraction)):
        return math.sqrt(value)
    scaled = Fraction(value) * 4**BITS
    return Fraction(math.isqrt(scaled.numerator // scaled.denominator), 2**BITS)


def raised_mass(p: Pmf, token: int, delta: Any) -> Any:
    """Return h(d) = ``min(1, p(d) + sqrt(2 delta p(d) (1 - p(d))))``, the raised probability of the draft ``token``.

    d is ``token``. Raises ``ValueError`` for a negative budget ``delta``.
    """
    if not delta >= 0:
        raise ValueError(f"delta is {delta}, expected a divergence >= 0 (0 is lossless)")
    mass = p[token]
    return min(mass + root(2 * parameter(delta, p) * mass * (1 - mass)), mass * 0 + 1)


def raised(p: Pmf, token: int, delta: Any) -> Pmf:
    """Return h, the pmf ``[V]``: p with the draft ``token`` raised within the budget ``delta``, all others lowered."""
    mass, high = p[token], raised_mass(p, token, delta)
    if not mass < 1:
        return p
    point = one_hot(token, p)
    return (1 - point) * (p * ((1 - high) / (1 - mass))) + point * high


def kept_probability(p: Pmf, q: Pmf, token: int, delta: Any) -> Any:
    """Return ``min(1, h(d)/q(d))``, the acceptance probability of the draft d = ``token``.

    h(d) is the probability of d under p, raised within the budget ``delta`` (``raised_mass``).
    """
    return accept_probability(raised(p, token, delta), q, token)


@from_parts
def build(task: Task, delta: Any = 1, gamma: int = 10) -> Parts:
    """Return the decoder that drafts ``gamma`` tokens from q and tests each draft d with h(d) in place of p(d)."""
    verify = accept_or_replace(
        accept=lambda prefix, p, q, token: kept_probability(p, q, token, delta),
        replacement=lambda p, q, token: residual(raised(p, token, delta), q),
    )
    return Parts(model_drafter(draft_model(task)), constant(gamma), verify)


def declared_law(task: Task, prompt: Tokens, delta: Any = 1, gamma: int = 10) -> dict[Tokens, Any]:
    """Return the declared law, new tokens -> probability: the mixture, over the drafts, of acceptance and residual.

    The options are those of ``build``.
    """

    def position(prefix: Tokens, p: Pmf, q: Pmf) -> Split:
        kept, replaced = [], p * 0
        for token, proposed in enumerate(q.tolist()):
            kept.append(min(proposed, raised_mass(p, token, delta)))
            if proposed > kept[-1]:
                replaced = replaced + (proposed - kept[-1]) * residual(raised(p, token, delta), q)
        return kept, replaced.tolist()

    return chain_law(task, prompt, gamma, position)


ALGORITHM = Algorithm(
    name="cactus",
    summary="p is raised at d within a divergence delta, and lowered elsewhere; speculative sampling of this p "
    "(declared bias)",
    build=build,
    claims=frozenset({Claim.GREEDY, Claim.SUPPORTED}),
    examples=({"delta": Fraction(1, 50), "gamma": 1}, {"delta": Fraction(1, 10), "gamma": 2}),
    paper="arXiv 2604.04987; code: MANGA-UOFA/Cactus 3b01b81, cactus/cactus.py",
    declared_law=declared_law,
    systems=("Cactus",),
    needs_training="the loss of quality by the lost exactness",
    reductions=(Reduction("speculative-sampling", "delta = 0", {"delta": 0, "gamma": 2}, {"gamma": 2}),),
)
