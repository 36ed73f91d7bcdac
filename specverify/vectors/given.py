"""Interpreters of draws with given random numbers, which make an algorithm of ``reference`` deterministic.

The site of a draw selects its random number. ``GivenUniforms`` answers by inverse CDF, with one uniform for each coin
(accept decision) and one for the token after the coins. ``GivenKeys`` uses the same coins, but draws the token by an
exponential race.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from specverify.reference import Draws, Pmf, Site, inverse_cdf

UNASKED = Fraction(0)
"""Uniform of a decision with only one possible outcome; any other uniform would give the same outcome."""
FINEST = 24
"""Most binary digits of a uniform; float32 represents them exactly."""


class GivenUniforms:
    """Draws by inverse CDF, with a given uniform number for each random decision of a round.

    ``site`` is the name of a decision, such as ``("accept", 2)``. The function ``uniform`` maps it to the number.
    """

    def __init__(self, uniform: Callable[[Site], Fraction]) -> None:
        """Store ``uniform``: the function from a site to its uniform, in [0, 1)."""
        self._uniform = uniform

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw from ``pmf`` at ``site``, by inverse CDF.

        It is the first outcome whose cumulative probability exceeds the uniform number of ``site``.
        """
        return inverse_cdf(pmf, self._uniform(site))  # type: ignore[arg-type]  # rationals are compared exactly


class GivenKeys:
    """Decides coins by uniform numbers, and draws tokens by a race: the argmin of ``key / probability``.

    If the keys are independent and exponential with rate 1, the token has the law of the pmf.
    """

    def __init__(self, coins: Draws, keys: Sequence[Fraction]) -> None:
        """Store ``coins``, which answers the accept decisions, and ``keys``, positive numbers, one per token."""
        self._coins, self._keys = coins, keys

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of the draw from ``pmf`` at ``site``.

        At an accept decision the outcome is that of ``coins``. At any other site it is the winner of the race among the
        tokens of ``pmf``.
        """
        if site[0] == "accept":
            return self._coins.categorical(pmf, site)
        return race(pmf, self._keys)[0]


def race(weights: Pmf, keys: Sequence[Fraction]) -> tuple[int, Fraction]:
    """Return the token with the least ratio ``key / weight``, and the factor by which it wins.

    Token t has the entries t of ``keys`` and ``weights``; tokens of weight 0 do not take part. The factor is the second
    least ratio divided by the least, or 0 if only one token takes part.
    """
    times = sorted((key / mass, token) for token, (key, mass) in enumerate(zip(keys, weights, strict=True)) if mass > 0)
    return times[0][1], times[1][0] / times[0][0] if len(times) > 1 else Fraction(0)


def uniform_in(low: Any, high: Any, towards: Fraction = Fraction(1, 2)) -> Fraction:
    """Return a binary fraction with few digits inside ``[low, high)``, near ``low + towards * (high - low)``.

    The result keeps a distance of at least a sixteenth of the interval from both ends, so that rounding cannot change
    the decision of a right program. Raises ``ValueError`` if a fraction with ``FINEST`` bits does not suffice.
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
    """Return a uniform that inverse CDF over ``weights`` maps to ``outcome``, away from the ends of its interval.

    ``towards`` is the approximate position of the uniform in this interval: 0 is the lower end, 1 the upper end.
    """
    before = sum((Fraction(mass) for mass in weights[:outcome]), start=Fraction(0))
    return uniform_in(before, before + Fraction(weights[outcome]), towards)
