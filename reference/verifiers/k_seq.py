"""K-SEQ, the sequential selection of SpecTr (arXiv 2310.15141): every candidate has the same reduced acceptance.

K candidates are drawn independently from one q. With ``beta(rho) = sum min(p/rho, q)``, each in turn is accepted with
probability ``min(1, p(x)/(rho q(x)))``; if none is, the token comes from

    norm(p - min(p/rho, q) (1 - (1 - beta)^K)/beta)

This is lossless for every rho in [rho*, K], where rho* >= 1 solves ``1 - (1 - beta)^K = rho beta``: for these rho the
difference is nowhere negative. The acceptance is ``1 - (1 - beta)^K``, largest at rho*, where it is at least ``1 - (1 -
1/K)^K > 1 - 1/e`` of the optimum. rho* is irrational in general. It is approximated from above by bisection, so that
arithmetic stays exact; this loses a little acceptance, but not losslessness. K = 1 gives rho = 1, speculative sampling.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..coupling import accept_probability, flip, positive_part
from ..remembered import by_values
from ..tree_rounds import Step, descend
from ..types import Draft, Draws, LanguageModel, Pmf, Tokens, Verified, Verifier


def k_seq(bits: int = 16) -> Verifier:
    """Return the K-SEQ verifier, which accepts each candidate x with probability ``min(1, p(x)/(rho q(x)))``.

    rho is ``least_rho``, computed to ``bits`` binary places. Raises ``ValueError`` for ``bits`` below 1. The verifier
    raises ``ValueError`` if the candidates of one position were not drawn from one pmf.
    """
    if bits < 1:
        raise ValueError(f"bits is {bits}, expected at least 1 (the precision of rho)")

    def select(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
        q, count = pmfs[0], len(tokens)
        if any(pmf is not q and pmf.tolist() != q.tolist() for pmf in pmfs):
            raise ValueError(f"the {count} candidates at depth {depth} have different pmfs, expected one for all")
        rho, owed = _plan(p, q, count, bits)
        for k, token in enumerate(tokens):
            if flip(draws, accept_probability(p, rho * q, token), ("accept", depth, k)):
                return Step(token, accepted=True)
        return Step(draws.categorical(owed, ("residual", depth)), accepted=False)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        return descend(draws, target, prefix, draft, select)

    return verify


def least_rho(p: Pmf, q: Pmf, count: int, bits: int) -> Any:
    """Return the least rho for which K-SEQ is lossless, rounded up by at most 2^-bits.

    ``count`` is K, the number of candidates; rho is in [1, K]. If it is 1 the result is the integer 1; else it is a
    ``Fraction`` for rational pmfs and a float for others.
    """
    low, high = 1, count
    if is_valid(p, q, low, count):
        return low
    exact = p.dtype == object
    for _ in range(bits + count.bit_length()):
        middle: Any = Fraction(low + high) / 2 if exact else (low + high) / 2
        low, high = (low, middle) if is_valid(p, q, middle, count) else (middle, high)
    return high


def is_valid(p: Pmf, q: Pmf, rho: Any, count: int) -> bool:
    """Return whether K-SEQ with this ``rho`` is lossless for K = ``count`` candidates.

    The condition is ``1 - (1 - beta)^K <= rho beta``, with beta the acceptance probability of one candidate: then no
    token is accepted more often than p allows.
    """
    rate = beta(p, q, rho)
    return bool(1 - (1 - rate) ** count <= rho * rate)


def beta(p: Pmf, q: Pmf, rho: Any) -> Any:
    """Return ``sum min(p/rho, q)``: the probability that K-SEQ with this ``rho`` accepts one candidate drawn from q."""
    return capped(p, q, rho).sum()


def capped(p: Pmf, q: Pmf, rho: Any) -> Pmf:
    """Return ``min(p/rho, q)`` for every token, ``[V]``."""
    return p / rho - positive_part(p / rho - q)


def acceptance(p: Pmf, q: Pmf, count: int, bits: int = 40) -> Any:
    """Return the probability that K-SEQ accepts one of K = ``count`` candidates drawn from q: ``1 - (1 - beta)^K``.

    ``beta`` is that of one candidate, for the rho of ``least_rho`` with ``bits`` binary places.
    """
    return 1 - (1 - beta(p, q, least_rho(p, q, count, bits))) ** count


def leftover(p: Pmf, q: Pmf, rho: Any, count: int) -> Pmf:
    """Return the law of the token that K-SEQ draws after it has rejected ``count`` candidates with this ``rho``.

    It is p if rounding leaves no mass.
    """
    rate = beta(p, q, rho)
    taken = capped(p, q, rho) * ((1 - (1 - rate) ** count) / rate) if rate > 0 else p - p
    owed = positive_part(p - taken)
    mass = owed.sum()
    return owed / mass if mass > 0 else p


@by_values
def _plan(p: Pmf, q: Pmf, count: int, bits: int) -> tuple[Any, Pmf]:
    rho = least_rho(p, q, count, bits)
    return rho, leftover(p, q, rho, count)
