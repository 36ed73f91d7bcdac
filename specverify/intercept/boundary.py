"""Random numbers at an end of what their generators return: the draws at which a token of probability 0 gets out.

What is returned here a generator can return. It was found out by giving the generators states from which they return it
(``property_tests/intercept/test_boundary_values.py``), and by their documentation:

    uniform        torch, NumPy, random    0 and 1 - 2**-bits; the significands have 53, 24, 11 (half) and 8 (bfloat16)
    exponential    NumPy Generator         0 and 44.4, by the inverse 36.7; RandomState and random: -0.0 and 36.7
                   torch                   documented to be above 0: the smallest and the largest in float64 are 2**-53
                                           and 36.7, cast to the dtype
    Gumbel         NumPy                   -3.6 and 36.7: it draws again where it would be infinite
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from specverify.intercept.caller import caller
from specverify.intercept.refusals import NeedsValue

ONE_BELOW_ONE = 1 - 2**-53
SMALLEST = 2.0**-53
"""The smallest uniform above 0."""
LATEST = -math.log(SMALLEST)
"""The largest exponential made by an inverse: 36.7."""
TAIL = 7.69711747013104972
"""Where the tail of NumPy's ziggurat begins; the largest of its exponentials is this and ``LATEST``."""
MOST_CALLS = 200_000
"""Draws of one number after the other: who makes more waits for another number than the one that comes each time."""
INSIDE = 2.0**-6
"""How far from the end a number is that is to be near it and ordinary; every floating type has it."""


class MoreNumbers(Exception):  # noqa: N818 - reads as the sentence it is
    """More random numbers are drawn than there are values for."""


class Boundary:
    """Gives random numbers a value: 0 and 1 stand for the smallest and the largest that their generator returns."""

    def __init__(
        self, end: float, only: int | None = None, values: Sequence[float] | None = None, apart: float = 0.0
    ) -> None:
        """Give every number the value ``end``; or only the one of this place, and to the others one near that end.

        ``values`` are those of the uniforms that all numbers are made of, one after the other, where they are known.
        With ``apart`` a number that would be at the end is that far from it, measured in probability.
        """
        self._values = values
        self._end, self._only, self._apart = end, only, apart
        self.coarsest = 0.0
        """The largest probability that one of the numbers at the end has exactly that value."""
        self.closer = 0.0
        """The probability, at most, that any of these numbers is closer to the end than the value it was given.

        Of the ``only`` one it is that of all numbers that are drawn together with it: each may be the one.
        """
        self.together = 1
        """How many numbers are drawn together with the ``only`` one."""
        self.calls = 0
        """How often one number was drawn, or several at once."""
        self.drawn = 0
        """How many numbers were drawn."""
        self.arrays: list[tuple[int, int]] = []
        """The number of the first, and how many, of those that were drawn together."""
        self.where, self.value = "", end
        """The call and the line that drew the one, and what it was given."""

    def number(
        self, call: str, smallest: float, largest: float, between: Callable[[float], float], least: float
    ) -> float:
        """Return the next number of a generator; ``between(u)`` is the one that it makes of a uniform.

        ``least`` is the probability of its end, at most: what the generator tells apart.
        """
        if self._values is not None:
            return between(self._next())
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise NeedsValue(
                "endless-at-an-end",
                f"{call} at {caller()} is called again and again while every number is {self._end:g}",
            )
        here, end = self._only in (None, self.drawn), self._end
        self.drawn += 1
        if not here and end in (0, 1):
            end = abs(end - INSIDE)
        value = smallest if end == 0 else largest if end == 1 else between(end)
        if here and end in (0, 1):
            distance = max(self._apart, least)
            self.coarsest, self.closer = max(self.coarsest, least), self.closer + distance
            if self._apart:
                value = between(min(distance, 1 - least) if end == 0 else max(1 - least - distance, 0.0))
        if here and self._only is not None:
            self.where, self.value = f"{call} at {caller()}", value
        return value

    def several(self, count: int, number: Callable[[], float]) -> list[float]:
        """Return that many numbers of one call; they are alike unless one of them alone is at its end, or all known."""
        if self._values is not None:
            return [number() for _ in range(count)]
        first = self.drawn
        self.arrays.append((first, count))
        self.drawn = first + 1 if first == self._only else first
        before = self.closer
        result = [number()] * count if count else []
        if self._only is not None and first <= self._only < first + count:
            self.drawn, self.together = self._only, count
            result[self._only - first] = number()
        self.closer = before + count * (self.closer - before)
        self.drawn = first + count
        return result

    def _next(self) -> float:
        """Return the next value that is known. Raises ``MoreNumbers`` if there is none."""
        values = self._values or ()
        if self.drawn >= len(values):
            raise MoreNumbers(f"{self.drawn + 1} random numbers are drawn, and {len(values)} were before")
        self.drawn += 1
        return values[self.drawn - 1]

    def uniform(self, call: str, largest: float = ONE_BELOW_ONE) -> float:
        """Return the next uniform."""
        return self.number(call, 0.0, largest, float, 1 - largest)

    def whole(self, call: str, low: int, number: int) -> int:
        """Return the next whole number, one of so many from ``low`` on."""
        return low + int(self.number(call, 0, number - 1, lambda u: math.floor(u * number), 1 / number))

    def exponential(self, call: str, smallest: float = 0.0, largest: float = LATEST, least: float = SMALLEST) -> float:
        """Return the next exponential of rate 1."""
        known = self._values is not None  # what is known is known of u, where the exponential is -log u
        return self.number(call, smallest, largest, lambda u: -math.log(u) if known else -math.log1p(-u), least)

    def gumbel(self, call: str) -> float:
        """Return the next number of NumPy's standard Gumbel law."""
        return self.number(call, -math.log(LATEST), LATEST, lambda u: -math.log(-math.log(u)), SMALLEST)


class NearEnd(NamedTuple):
    """Every number of a run at one distance from an end; what gives the values of each run is kept."""

    end: float
    apart: float
    boundaries: list[Boundary]

    def __float__(self) -> float:
        """Return the end, for a program whose uniforms have no distance."""
        return self.end


Forced = float | NearEnd | Boundary | None
"""The value of every uniform, 1 being the largest one; or what gives values, or nothing."""


def boundary_of(forced: Forced) -> Boundary | None:
    """Return what gives values in one run, if anything does."""
    if isinstance(forced, NearEnd):
        forced.boundaries.append(Boundary(forced.end, apart=forced.apart))
        return forced.boundaries[-1]
    return Boundary(forced) if isinstance(forced, int | float) else forced
