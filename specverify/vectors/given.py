"""Draws with given random numbers, which turn an algorithm of ``reference`` into a function for test vectors.

A site convention assigns random numbers to decisions. ``GivenUniforms`` answers by inverse CDF, one uniform for each
coin and one for the token after them; ``GivenKeys`` uses the same coins and draws the token by an exponential race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from specverify.reference import Draws, Pmf, Site, inverse_cdf

UNASKED = Fraction(0)
"""The uniform of a decision that is certain: it does not matter."""
FINEST = 24
"""Bits of a uniform: float32 holds them all."""


class GivenUniforms:
    """Interpreter that answers every draw by inverse CDF from the uniform of its site."""

    def __init__(self, uniform: Callable[[Site], Fraction]) -> None:
        """``uniform(site)`` returns the uniform of a site, in [0, 1)."""
        self._uniform = uniform

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome whose interval of the cumulative pmf holds the site's uniform."""
        return inverse_cdf(pmf, self._uniform(site))  # type: ignore[arg-type]  # rationals are compared exactly


class GivenKeys:
    """Interpreter that decides coins by uniforms, and tokens by the argmin of ``key / probability`` (a race).

    With keys E_v ~ Exp(1) the argmin of E_v / p_v has the law p; ``-log E_v`` is Gumbel noise, and the argmax of ``log
    p_v - log E_v`` is the same token.
    """

    def __init__(self, coins: Draws, keys: Sequence[Fraction]) -> None:
        """``keys`` are positive, one per token."""
        self._coins, self._keys = coins, keys

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the result of the coin, or the token that wins the race."""
        if site[0] == "accept":
            return self._coins.categorical(pmf, site)
        return race(pmf, self._keys)[0]


def race(weights: Pmf, keys: Sequence[Fraction]) -> tuple[int, Fraction]:
    """Return the winner of a race, and the factor by which it is ahead of the second (0 without a second)."""
    times = sorted((key / mass, token) for token, (key, mass) in enumerate(zip(keys, weights, strict=True)) if mass > 0)
    return times[0][1], times[1][0] / times[0][0] if len(times) > 1 else Fraction(0)


def uniform_in(low: Any, high: Any, towards: Fraction = Fraction(1, 2)) -> Fraction:
    """Return a short dyadic number well inside ``[low, high)``, at about the share ``towards`` of it.

    It is at least a sixteenth of the interval away from either end, so that rounding cannot change a right program's
    decision. Raises ``ValueError`` if ``FINEST`` bits are not enough.
    """
    low, high = Fraction(low), Fraction(high)
    spare = (high - low) / 16
    wanted = low + (high - low) * towards
    for bits in range(1, FINEST + 1):
        result = Fraction(round(wanted * 2**bits), 2**bits)
        if low + spare <= result <= high - spare:
            return result
    raise ValueError(f"no number of {FINEST} bits lies well inside {low} to {high}, expected a wider interval")


def uniform_for(weights: Sequence[Any], outcome: int, towards: Fraction = Fraction(1, 2)) -> Fraction:
    """Return a uniform that inverse CDF maps to ``outcome``, well inside its interval."""
    before = sum((Fraction(mass) for mass in weights[:outcome]), start=Fraction(0))
    return uniform_in(before, before + Fraction(weights[outcome]), towards)
