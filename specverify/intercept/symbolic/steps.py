"""Steps of which a monotone function of one number is made, and the one form in which chains of them are kept.

Factors stand before summands, logarithms and exponentials are undone by each other, so that two ways of writing one
function are one chain, and a race knows its clocks however they are spelled (see ``races``). All steps are strictly
monotone but ``floor`` and ``rounded``, which keep order and make steps.

Smooth increasing functions that are steps of their own: the value, the inverse, the images and bounds of the slope.

A row of ``elementwise`` gives the names that the libraries have for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.cpython.patches import ceil, copysign, exp, floor, frexp, inf, isfinite, ldexp, log, pi
from specverify.laws.rounding import FLOAT64

# Monotone


class Rule(NamedTuple):
    """A strictly increasing and smooth function of every real number, in NumPy's functions of arrays."""

    of: Callable[[Any], Any]
    back: Callable[[Any], Any]
    """The inverse, of numbers inside ``images``."""
    images: tuple[float, float]
    """The infimum and the supremum of its values, which it does not have."""
    slopes: Callable[[Any, Any], tuple[Any, Any]]
    """``slopes(low, high)``: bounds of its derivative between two numbers, elementwise."""

    def inverse(self, images: Any) -> Any:
        """Return the numbers with these images; an infinite one beyond all images."""
        low, high = self.images
        inside = (images > low) & (images < high)
        result = self.back(np.where(inside, images, 0.5 * (max(low, -1.0) + min(high, 1.0))))
        return np.where(inside, result, np.where(images <= low, -inf, inf))


def _slopes_of_arctan(low: Any, high: Any) -> tuple[Any, Any]:
    """Bound ``1 / (1 + x^2)``, which falls with the distance from 0."""
    near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    far = np.maximum(np.abs(low), np.abs(high))
    return 1 / (1 + far * far), 1 / (1 + near * near)


RULES: dict[str, Rule] = {"arctan": Rule(np.arctan, np.tan, (-pi / 2, pi / 2), _slopes_of_arctan)}
"""By their names in NumPy."""


# Steps


SCALES = {"times", "power"}
STEPPED = {"floor", "rounded"}
"""What gives values a probability."""
_LARGEST_LOGARITHM = 700.0
"""Below it exponentials are ordinary numbers."""


class MonotoneStep(NamedTuple):
    """A monotone function: ``plus``, ``times`` or to the ``power`` of a number, ``log``, ``exp`` or ``floor``.

    ``rounded`` is to the nearest float of so many bits; other names are those of ``steps.RULES``.
    """

    name: str
    number: float = 0.0

    @property
    def increasing(self) -> bool:
        """Whether it keeps the order of numbers."""
        return self.number > 0 or self.name not in SCALES

    def of(self, value: float) -> float:
        """Return the image of a number, or of an end of what it is defined for."""
        if self.name == "plus":
            return value + self.number
        if self.name == "times":
            return value * self.number if value else 0.0
        if self.name == "log":
            return log(value) if value > 0 else -inf
        if self.name == "exp":
            return exp(value) if value < _LARGEST_LOGARITHM else inf
        if self.name in STEPPED:
            return _stepped(self, value) if isfinite(value) else value
        return float(RULES[self.name].of(value)) if self.name in RULES else _power(value, self.number)

    def back(self, bound: float) -> float:
        """Return the number whose image is ``bound``; an infinite one beyond all images. ``STEPPED`` have none."""
        if self.name == "plus":
            return bound - self.number
        if self.name == "times":
            return bound / self.number
        if self.name == "log":
            return EXP.of(bound)
        if self.name in RULES:
            return float(RULES[self.name].inverse(bound))
        return LOG.of(bound) if self.name == "exp" else _power(bound, 1.0 / self.number)


LOG, EXP, FLOOR = MonotoneStep("log"), MonotoneStep("exp"), MonotoneStep("floor")
MIRRORED = (MonotoneStep("times", -1.0), MonotoneStep("plus", 1.0))
"""``1 - u``, a uniform number as well as ``u``."""


def plus(number: float) -> MonotoneStep:
    """The value plus a finite number."""
    return MonotoneStep("plus", number)


def times(number: float) -> MonotoneStep:
    """The value times a finite number other than 0."""
    return MonotoneStep("times", number)


def rounded(bits: int) -> MonotoneStep:
    """The nearest float that has so many bits."""
    return MonotoneStep("rounded", float(bits))


def _stepped(step: MonotoneStep, value: float) -> float:
    """Return the whole part, or the nearest float: the smallest and largest ones of a dtype are not looked after."""
    if step.name == "floor":
        return float(floor(value))
    (fraction, exponent), bits = frexp(value), int(step.number)
    return ldexp(round(ldexp(fraction, bits)), exponent - bits)


def _edge_of_rounded(bound: float, bits: int, *, or_equal: bool) -> tuple[float, bool]:
    """Return the number up to which what is rounded is below ``bound``, or equal to it; and whether it is itself.

    Halfway it goes to the even one: that is to be known where what is rounded has steps already.
    """
    if not bound:
        return bound, or_equal
    fraction, exponent = frexp(bound)
    above, power_of_two = ldexp(fraction, bits), 2 ** (bits - 1)
    first = floor(above) + 1 if or_equal else ceil(above)
    back = {power_of_two: 0.25, 1 - power_of_two: 0.75}.get(first, 0.5)  # nearer to 0 than it floats are twice as close
    return ldexp(first - back, exponent - bits), first % 2 == 1


def power(exponent: float) -> MonotoneStep:
    """A positive value to the power of a finite number other than 0."""
    return MonotoneStep("power", exponent)


def _power(value: float, exponent: float) -> float:
    if value <= 0:
        return -inf if value < 0 < exponent else 0.0 if exponent > 0 else inf
    try:
        return float(pow(value, exponent))
    except OverflowError:
        return inf


def carried_back(steps: tuple[MonotoneStep, ...], bound: float, *, or_equal: bool = False) -> float:
    """Return where the first number is when the image is ``bound``.

    The image is below the bound, or equal to it with ``or_equal``, on one side of what is returned. It matters for
    ``STEPPED`` alone.
    """
    for step in reversed(steps):
        if step.name not in STEPPED:
            bound, or_equal = step.back(bound), or_equal == step.increasing
        elif isfinite(bound) and step.name == "rounded":
            bound, or_equal = _edge_of_rounded(bound, int(step.number), or_equal=or_equal)
        elif isfinite(bound):
            bound, or_equal = float(floor(bound) + 1 if or_equal else ceil(bound)), False
    return bound


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
    ("floor", "floor"): lambda number, step: (step,),
    ("rounded", "rounded"): lambda number, step: (rounded(int(number)),),
    ("plus", "plus"): lambda number, step: (plus(number + step.number),),
    ("times", "times"): lambda number, step: (times(number * step.number),),
    ("power", "power"): lambda number, step: (power(number * step.number),),
    ("plus", "times"): lambda number, step: (step, plus(number * step.number)),
    ("plus", "exp"): lambda number, step: (step, times(exp(number))),
    ("times", "exp"): lambda number, step: (step, power(number)),
    ("exp", "power"): lambda number, step: (times(step.number), EXP),
    ("power", "log"): lambda number, step: (step, times(number)),
    ("times", "log"): lambda number, step: (times(copysign(1, number)), step, plus(log(abs(number)))),
    ("times", "power"): lambda number, step: (
        times(copysign(1, number)),
        step,
        times(_power(abs(number), step.number)),
    ),
}
"""What stands for two steps, the first of them given by its number."""


def _stays(rest: tuple[MonotoneStep, ...], last: MonotoneStep, step: MonotoneStep) -> bool:
    """Return whether two steps stay as they are although there is a rule."""
    if step.name == "rounded":
        return step.number < last.number
    if step == EXP:
        return rest[-1:] != (LOG,) if last.name == "times" else abs(last.number) > _LARGEST_LOGARITHM
    return last.name == "times" and last.number == -1 and step.name in {"log", "power"}


def _nothing(step: MonotoneStep) -> bool:
    """Return whether a step changes nothing; a product with its reciprocal may be a rounding away from 1."""
    return step.number == 0 if step.name == "plus" else step.name in SCALES and abs(step.number - 1) <= FLOAT64
