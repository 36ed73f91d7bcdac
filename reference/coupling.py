"""The coupling of speculative sampling: when a drafted token is accepted, and how it is replaced.

Leviathan et al. 2211.17192, Algorithm 1 and Appendix A.1; Chen et al. 2302.01318, Algorithm 2. With ``d ~ q``, accept
with probability ``min(1, p(d)/q(d))`` and otherwise emit from ``norm((p - q)+)``: the output law is p, and no rule that
is lossless for this q accepts more often than ``sum min(p, q)``. All functions take 1-D pmfs of one array type
(float64, tensors of any device, object arrays of ``Fraction``) and stay in that type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace

from .pmf import check_pmfs, check_same_vocabulary
from .types import Draws, Pmf, Site
from .validation import argument_error, checked_token


def accept_probability(p: Pmf, q: Pmf, token: int) -> Any:
    """Return P(u q(d) < p(d)) for uniform u in [0, 1): the scalar ``min(1, p(d)/q(d))`` without a division by zero.

    A token with p(d) = 0 is never accepted, whatever u. If q(d) = 0, the result is 1 if p(d) is positive, else 0.
    """
    check_same_vocabulary(p, q)
    if type(token) is not int or not 0 <= token < p.shape[0]:
        token = checked_token(token, p.shape[0])
    mass, proposed = p[token], q[token]
    ratio = mass / proposed if not mass >= proposed else mass * 0 + 1 if mass > 0 else mass * 0
    if p.dtype != object and not 0 <= ratio <= 1:
        raise ValueError(f"p gives token {token} {mass} and q {proposed}, expected probabilities")
    return ratio


def residual(p: Pmf, q: Pmf) -> Pmf:
    """Return ``norm((p - q)+)``, the law of the replacement after a rejection; p if p <= q everywhere, never NaN.

    In exact arithmetic this case means p = q; in floats it also occurs by rounding. Raises ``ValueError`` unless both
    are pmfs of one length.
    """
    check_pmfs(p, q)
    return excess_law(p, q)


def excess_law(p: Pmf, q: Pmf) -> Pmf:
    """Return ``norm((p - q)+)`` for masses >= 0 that need not sum to 1; if p <= q everywhere, return p.

    Raises ``ValueError`` unless both have the same shape ``[vocabulary]``.
    """
    check_same_vocabulary(p, q)
    excess = positive_part(p - q)
    mass = excess.sum()
    return excess / mass if mass > 0 else p


def overlap(p: Pmf, q: Pmf) -> Any:
    """Return the scalar ``sum min(p, q) = 1 - TV(p, q)``: the acceptance probability of one drafted token.

    Raises ``ValueError`` unless both are pmfs of one length.
    """
    check_pmfs(p, q)
    return (p - positive_part(p - q)).sum()


def total_variation(p: Pmf, q: Pmf) -> Any:
    """Return the scalar ``TV(p, q) = sum (p - q)+``, in [0, 1]. Raises ``ValueError`` unless both are pmfs."""
    check_pmfs(p, q)
    return positive_part(p - q).sum()


def positive_part(values: Pmf) -> Pmf:
    """Return ``max(values, 0)`` entry by entry."""
    return array_namespace(values).maximum(values, values - values)


def flip(draws: Draws, probability: Any, site: Site) -> bool:
    """Return True with the given probability, by a draw from the two-point pmf (heads, tails) at ``site``.

    Raises ``ValueError`` if ``probability`` is no number.
    """
    try:
        if isinstance(probability, float) or hasattr(probability, "dtype"):
            heads = float(probability)
            pmf = np.array([heads, max(1 - heads, 0.0)])  # 1 + epsilon is a rounded 1
        else:
            pmf = np.array([probability, 1 - probability], dtype=object)
    except TypeError:
        raise argument_error("the probability", probability, "a number in [0, 1]") from None
    return draws.categorical(pmf, site) == 0
