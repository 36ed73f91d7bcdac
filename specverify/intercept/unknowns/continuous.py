"""A random number that nobody has valued: a monotone function of one uniform, clamped between two numbers.

``Continuous`` is ``min(max(g(u), low), high)`` with a strictly monotone g, written as a chain of steps. The chain is
kept in one form: factors before summands, logarithms and exponentials undone by each other, so that two ways of
writing one function are one chain, and a race knows its clocks however they are spelled (see ``races``). Clamps stand
at the end, because a monotone step may be taken before a clamp as well as after it.

A clamp gives two values a probability. A comparison at such a value, or within rounding of it, hangs on how the program
rounds; it is refused. At every other number it does not matter whether a comparison includes equality.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from specverify.intercept.unknowns.uniform import NeedsValue, Uniform
from specverify.laws.rounding import FLOAT32, FLOAT64

NEAR = 4 * FLOAT32
"""Numbers as near as this, relative to their size or in the uniform, may be one number that was computed twice."""
_SCALES = {"times", "power"}
_LARGEST_LOGARITHM = 700.0
"""Below it exponentials are ordinary numbers."""


class MonotoneStep(NamedTuple):
    """A strictly monotone function: ``plus``, ``times`` or to the ``power`` of a number, ``log`` or ``exp``."""

    name: str
    number: float = 0.0

    @property
    def increasing(self) -> bool:
        """Whether it keeps the order of numbers."""
        return self.number > 0 or self.name not in _SCALES

    def of(self, value: float) -> float:
        """Return the image of a number, or of an end of what it is defined for."""
        if self.name == "plus":
            return value + self.number
        if self.name == "times":
            return value * self.number if value else 0.0
        if self.name == "log":
            return math.log(value) if value > 0 else -math.inf
        if self.name == "exp":
            return math.exp(value) if value < _LARGEST_LOGARITHM else math.inf
        return _power(value, self.number)

    def back(self, bound: float) -> float:
        """Return the number whose image is ``bound``; an infinite one beyond all images."""
        if self.name == "plus":
            return bound - self.number
        if self.name == "times":
            return bound / self.number
        if self.name == "log":
            return EXP.of(bound)
        return LOG.of(bound) if self.name == "exp" else _power(bound, 1.0 / self.number)


LOG, EXP = MonotoneStep("log"), MonotoneStep("exp")


def plus(number: float) -> MonotoneStep:
    """The value plus a finite number."""
    return MonotoneStep("plus", number)


def times(number: float) -> MonotoneStep:
    """The value times a finite number other than 0."""
    return MonotoneStep("times", number)


def power(exponent: float) -> MonotoneStep:
    """A positive value to the power of a finite number other than 0."""
    return MonotoneStep("power", exponent)


def _power(value: float, exponent: float) -> float:
    if value <= 0:
        return -math.inf if value < 0 < exponent else 0.0 if exponent > 0 else math.inf
    try:
        return math.pow(value, exponent)
    except OverflowError:
        return math.inf


class Continuous(NamedTuple):
    """``steps`` of a uniform, applied in order, and then clamped."""

    uniform: Uniform
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -math.inf
    high: float = math.inf

    def then(self, step: MonotoneStep) -> Continuous:
        """Return the value with one more step. Raises ``NeedsValue`` where that leaves the range of floats."""
        steps = pushed(self.steps, step)
        if any(not 0 < abs(each.number) < math.inf for each in steps if each.name in _SCALES):
            raise NeedsValue(f"a random number leaves the range of floats ({step.name} {step.number:g})")
        ends = step.of(self.low), step.of(self.high)
        return Continuous(self.uniform, steps, *(ends if step.increasing else ends[::-1]))

    @property
    def increasing(self) -> bool:
        """Whether the value grows with the uniform."""
        return sum(not step.increasing for step in self.steps) % 2 == 0

    @property
    def clamped(self) -> bool:
        """Whether a clamp gives some value a probability."""
        return self._mass(self.low) > 0 or self._mass(self.high) < 1

    def ends(self) -> tuple[float, float]:
        """Return the infimum and the supremum of the values it can have."""
        low, high = 0.0, 1.0
        for step in self.steps:
            low, high = (step.of(low), step.of(high)) if step.increasing else (step.of(high), step.of(low))
        return min(max(low, self.low), self.high), max(min(high, self.high), self.low)

    def below(self, bound: float, place: str = "") -> bool:
        """Return whether the value is below ``bound``, by carrying the bound back to the uniform; never below NaN.

        ``place`` is the line that compares, if it is not the one that is running. Raises ``NeedsValue`` if the bound is
        a value at which the number is clamped.
        """
        return not math.isnan(bound) and self.uniform.below(self._back(bound), place) == self.increasing

    def equals(self, number: float) -> bool:
        """Return that the value is no number that was named before, which has probability 0.

        Raises ``NeedsValue`` if it is a value at which the number is clamped.
        """
        self._back(number)
        return False

    def interval_of(self, bounds: Sequence[float], place: str = "") -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the value: an inverse-CDF lookup."""
        found = [self._back(bound) for bound in bounds]
        if self.increasing:
            return self.uniform.interval_of(found, place)
        return len(found) - self.uniform.interval_of(found[::-1], place)

    def _back(self, bound: float) -> float:
        """Return where the uniform is when the value is ``bound``; an infinite number where that is never."""
        for at, mass in ((self.low, self._mass(self.low)), (self.high, 1 - self._mass(self.high))):
            if mass > FLOAT32 and (math.isclose(bound, at, rel_tol=NEAR) or abs(self._between(bound, at)) <= NEAR):
                raise NeedsValue(f"a random number that is clamped at {at:g} is compared with {bound:g}")
        if not self.low < bound <= self.high:
            return math.inf if (bound > self.high) == self.increasing else -math.inf
        return self._uniform_at(bound)

    def _between(self, one: float, other: float) -> float:
        """Return how far the uniform goes between two values: where it goes not at all, rounding tells them apart."""
        return self._uniform_at(one) - self._uniform_at(other)

    def _uniform_at(self, bound: float) -> float:
        for step in reversed(self.steps):
            bound = step.back(bound)
        return bound

    def _mass(self, bound: float) -> float:
        """Return the probability that the value is below ``bound`` before it is clamped."""
        if math.isinf(bound):
            return float(bound > 0)
        share = min(max(self._uniform_at(bound), 0.0), 1.0)
        return share if self.increasing else 1 - share


def pushed(steps: tuple[MonotoneStep, ...], step: MonotoneStep) -> tuple[MonotoneStep, ...]:
    """Return the chain of ``steps`` and one more, in the form that all chains are kept in."""
    if _nothing(step):
        return steps
    rest, last = steps[:-1], steps[-1] if steps else step
    rule = _RULES.get((last.name, step.name))
    if not steps or rule is None or _stays(rest, last, step):
        return (*steps, step)
    for each in rule(last.number, step):
        rest = pushed(rest, each)
    return rest


_RULES: dict[tuple[str, str], Callable[[float, MonotoneStep], tuple[MonotoneStep, ...]]] = {
    ("log", "exp"): lambda number, step: (),
    ("exp", "log"): lambda number, step: (),
    ("plus", "plus"): lambda number, step: (plus(number + step.number),),
    ("times", "times"): lambda number, step: (times(number * step.number),),
    ("power", "power"): lambda number, step: (power(number * step.number),),
    ("plus", "times"): lambda number, step: (step, plus(number * step.number)),
    ("plus", "exp"): lambda number, step: (step, times(math.exp(number))),
    ("times", "exp"): lambda number, step: (step, power(number)),
    ("exp", "power"): lambda number, step: (times(step.number), EXP),
    ("power", "log"): lambda number, step: (step, times(number)),
    ("times", "log"): lambda number, step: (times(math.copysign(1, number)), step, plus(math.log(abs(number)))),
    ("times", "power"): lambda number, step: (
        times(math.copysign(1, number)),
        step,
        times(_power(abs(number), step.number)),
    ),
}
"""What stands for two steps, the first of them given by its number."""


def _stays(rest: tuple[MonotoneStep, ...], last: MonotoneStep, step: MonotoneStep) -> bool:
    """Return whether two steps stay as they are although there is a rule."""
    if step == EXP:
        return rest[-1:] != (LOG,) if last.name == "times" else abs(last.number) > _LARGEST_LOGARITHM
    return last.name == "times" and last.number == -1 and step.name in {"log", "power"}


def _nothing(step: MonotoneStep) -> bool:
    """Return whether a step changes nothing; a product with its reciprocal may be a rounding away from 1."""
    return step.number == 0 if step.name == "plus" else step.name in _SCALES and abs(step.number - 1) <= FLOAT64


def exponential(uniform: Uniform) -> Continuous:
    """Return Exp(1) as -log u."""
    return Continuous(uniform).then(LOG).then(times(-1.0))
