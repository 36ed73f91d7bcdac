"""Random numbers that nobody has valued: a monotone function of one uniform, or the largest or smallest of several.

A ``Continuous`` is ``min(max(g(u), low), high)`` with a monotone g, written as a chain of ``steps``. Clamps stand at
the end, because a monotone step may be taken before a clamp as well as after it.

A clamp gives two values a probability, and ``floor`` gives one to each of its own. Whether a comparison includes
equality matters there, and nowhere else. Where a bound is within rounding of such a value, and not that value, the
answer hangs on how the program rounds, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.steps import (
    FLOOR,
    LOG,
    SCALES,
    STEPPED,
    MonotoneStep,
    carried_back,
    plus,
    pushed,
    times,
)
from specverify.intercept.symbolic.uniform import Uniform
from specverify.intercept.unpatched import inf, isclose, isfinite, isinf, isnan
from specverify.laws.rounding import FLOAT32

NEAR = 4 * FLOAT32
"""Numbers as near as this, relative to their size or in the uniform, may be one number that was computed twice."""


class Continuous(NamedTuple):
    """``steps`` of a uniform, applied in order, and then clamped."""

    uniform: Uniform
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -inf
    high: float = inf

    def then(self, step: MonotoneStep) -> Continuous:
        """Return the value with one more step. Raises ``NeedsValue`` where that leaves the range of floats."""
        steps = pushed(self.steps, step)
        if any(not 0 < abs(each.number) < inf for each in steps if each.name in SCALES):
            raise NeedsValue(
                "out-of-range", f"a random number leaves the range of floats ({step.name} {step.number:g})"
            )
        ends = step.of(self.low), step.of(self.high)
        return Continuous(self.uniform, steps, *(ends if step.increasing else ends[::-1]))

    def at_least(self, bound: float) -> Continuous:
        """Return the larger one of the value and a number."""
        return self._replace(low=max(self.low, bound))

    @property
    def increasing(self) -> bool:
        """Whether the value grows with the uniform."""
        return not self.steps or sum(not step.increasing for step in self.steps) % 2 == 0

    @property
    def clamped(self) -> bool:
        """Whether a clamp gives some value a probability."""
        return self._mass(self.low) > 0 or self._mass(self.high) < 1

    @property
    def in_steps(self) -> bool:
        """Whether it has values that each have a probability, clamps apart."""
        return any(step.name in STEPPED for step in self.steps)

    def ends(self) -> tuple[float, float]:
        """Return the infimum and the supremum of the values it can have, given what is known of the uniform."""
        known = self.uniform.known
        low, high = known.low, known.high
        for step in self.steps:
            low, high = (step.of(low), step.of(high)) if step.increasing else (step.of(high), step.of(low))
        return min(max(low, self.low), self.high), max(min(high, self.high), self.low)

    def below(self, bound: float, place: str = "", *, or_equal: bool = False) -> bool:
        """Return whether the value is below ``bound``, by carrying the bound back to the uniform; never below NaN.

        ``place`` is the line that compares, if it is not the one that is running. Raises ``NeedsValue`` if the bound is
        within rounding of a value that has a probability.
        """
        if isnan(bound):
            return False
        return self.uniform.below(self._back(bound, or_equal=or_equal), place) == self.increasing

    def equals(self, number: float, place: str = "") -> bool:
        """Return whether it is a number: a value that has a probability, or no number that was named before."""
        atom = self.in_steps or (number in (self.low, self.high) and self.clamped)
        if not atom:
            self._back(number)
            return False
        return self.below(number, place, or_equal=True) and not self.below(number, place)

    def interval_of(self, bounds: Sequence[float], place: str = "", *, or_equal: bool = True) -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the value: an inverse-CDF lookup."""
        result = [self._back(bound, or_equal=not or_equal) for bound in bounds]
        if self.increasing:
            return self.uniform.interval_of(result, place)
        return len(result) - self.uniform.interval_of(result[::-1], place)

    def _back(self, bound: float, *, or_equal: bool = False) -> float:
        """Return where the uniform is when the value is ``bound``; an infinite number where that is never."""
        if not self.steps and self.low == -inf and self.high == inf:
            return bound
        for at, mass in ((self.low, self._mass(self.low)), (self.high, 1 - self._mass(self.high))):
            if mass <= FLOAT32 or (bound == at and float(np.float32(at)) == at):
                continue
            if isclose(bound, at, rel_tol=NEAR) or abs(self._uniform_at(bound) - self._uniform_at(at)) <= NEAR:
                raise NeedsValue(
                    "near-an-atom", f"a random number that is clamped at {at:g} is compared with {bound:g}"
                )
        if bound > self.high or (bound == self.high and or_equal):
            return inf if self.increasing else -inf
        if bound < self.low or (bound == self.low and not or_equal):
            return -inf if self.increasing else inf
        self._refuse_near_step(bound)
        return self._uniform_at(bound, or_equal=or_equal)

    def _refuse_near_step(self, bound: float) -> None:
        """Refuse a bound that may be a value of ``floor`` or ``rounded``, computed in another way."""
        place = next((n for n, step in enumerate(reversed(self.steps)) if step.name in STEPPED), None)
        if place is None or not isfinite(bound):
            return
        at, last = carried_back(self.steps[len(self.steps) - place :], bound), self.steps[-place - 1]
        whole = at if not isfinite(at) else float(round(at)) if last.name == "floor" else last.of(at)
        if at == whole or not isclose(at, whole, rel_tol=NEAR, abs_tol=NEAR if last.name == "floor" else 0.0):
            return
        steps = self.steps[: len(self.steps) - place]
        result = (carried_back(steps, whole, or_equal=or_equal) for or_equal in (False, True))
        ends = (min(max(end, 0.0), 1.0) for end in result)
        if abs(next(ends) - next(ends)) > FLOAT32:
            raise NeedsValue(
                "near-an-atom", f"a random number that has steps is compared with {bound:g}, as good as one of them"
            )

    def _uniform_at(self, bound: float, *, or_equal: bool = False) -> float:
        return carried_back(self.steps, bound, or_equal=or_equal)

    def _mass(self, bound: float) -> float:
        """Return the probability that the value is below ``bound`` before it is clamped."""
        if isinf(bound):
            return float(bound > 0)
        share = min(max(self._uniform_at(bound), 0.0), 1.0)
        return share if self.increasing else 1 - share


class Extreme(NamedTuple):
    """The largest of several numbers, random ones among them, or the smallest; or one at a place of their order."""

    parts: tuple[Continuous | float, ...]
    largest: bool = True
    rank: int = 0
    """How many are before it, larger ones or smaller ones."""

    def then(self, step: MonotoneStep) -> Extreme:
        """Return the value with one more step, which is taken by every part."""
        result = tuple(part.then(step) if isinstance(part, Continuous) else step.of(part) for part in self.parts)
        return Extreme(result, self.largest == step.increasing, self.rank)

    def at_least(self, bound: float) -> Extreme:
        """Return the larger one of the value and a number."""
        return Extreme(
            tuple(part.at_least(bound) if isinstance(part, Continuous) else max(part, bound) for part in self.parts),
            self.largest,
            self.rank,
        )

    def ends(self) -> tuple[float, float]:
        """Return the infimum and the supremum of the values it can have."""
        result = [part.ends() if isinstance(part, Continuous) else (part, part) for part in self.parts]
        low, high = map(self._picked, zip(*result, strict=True))
        return low, high

    def _picked(self, values: Iterable[Any]) -> Any:
        """Return what stands at the place."""
        return sorted(values, reverse=self.largest)[self.rank]

    def below(self, bound: float, place: str = "", *, or_equal: bool = False) -> bool:
        """Return whether it is below ``bound``: so many parts are. They are asked in turn."""
        wanted = len(self.parts) - self.rank if self.largest else self.rank + 1
        missing = len(self.parts) - wanted
        for answer in self._answers(bound, place, or_equal=or_equal):
            wanted, missing = wanted - answer, missing - (not answer)
            if not wanted or missing < 0:
                break
        return not wanted

    def _answers(self, bound: float, place: str, *, or_equal: bool) -> Iterator[bool]:
        for part in self.parts:
            if isinstance(part, Continuous):
                yield part.below(bound, place, or_equal=or_equal)
            else:
                yield part <= bound if or_equal else part < bound

    def equals(self, number: float, place: str = "") -> bool:
        """Return whether it is a number that has a probability."""
        return self.below(number, place, or_equal=True) and not self.below(number, place)

    def interval_of(self, bounds: Sequence[float], place: str = "", *, or_equal: bool = True) -> int:
        """Return how many of the non-decreasing ``bounds`` are below the value, or equal to it."""
        result = [
            part.interval_of(bounds, place, or_equal=or_equal)
            if isinstance(part, Continuous)
            else sum(bound <= part if or_equal else bound < part for bound in bounds)
            for part in self.parts
        ]
        return int(self._picked(result))


MOST_ORDERED = 64
"""Random numbers of which one at a place of their order is compared."""


def at_rank(parts: tuple[Any, ...], rank: int, *, largest: bool) -> Continuous | Extreme | float:
    """Return what comes at a place of the order of numbers and random numbers, the largest or smallest first.

    Raises ``NeedsValue`` if one of them is made of others, or NaN, and for too many.
    """
    if any(isinstance(part, tuple) and not isinstance(part, Continuous) for part in parts):
        raise NeedsValue("order-of-joined", "the order of random numbers is asked for, and one is made of others")
    if len(parts) > MOST_ORDERED:
        raise NeedsValue(
            "too-many-joined",
            f"the value at a place of the order of more than {MOST_ORDERED} random numbers is asked for",
        )
    if any(not isinstance(part, Continuous) and isnan(part) for part in parts):
        raise NeedsValue("equal-numbers", "the order of random numbers and NaN is asked for")
    return parts[0] if len(parts) == 1 else Extreme(parts, largest, rank)


def largest_of(operands: tuple[Any, ...], *, largest: bool = True) -> Continuous | Extreme | float:
    """Return the largest, or the smallest, of numbers and random numbers."""
    parts: list[Continuous | float] = []
    for operand in operands:
        if isinstance(operand, Extreme) and (operand.largest != largest or operand.rank):
            raise NeedsValue(
                "order-of-joined", "the largest of several random numbers is asked for, and one is not that of others"
            )
        if isinstance(operand, tuple) and not isinstance(operand, Continuous | Extreme):
            raise NeedsValue(
                "order-of-joined", "the largest of several random numbers is asked for, and one is made of others"
            )
        parts += operand.parts if isinstance(operand, Extreme) else (operand,)
    different = tuple(dict.fromkeys(parts))
    return different[0] if len(different) == 1 else Extreme(different, largest)


_EXPONENTIAL = (LOG, times(-1.0))


def exponential(uniform: Uniform) -> Continuous:
    """Return Exp(1) as -log u."""
    return Continuous(uniform, _EXPONENTIAL)


def whole_number(uniform: Uniform, low: int, number: int) -> Continuous:
    """Return one of so many whole numbers from ``low`` on, all equally likely."""
    return Continuous(uniform).then(times(float(number))).then(FLOOR).then(plus(float(low)))
