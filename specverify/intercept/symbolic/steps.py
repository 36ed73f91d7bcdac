"""Monotone functions of one number as chains of steps, and their normal form.

In the normal form factors precede summands, and logarithms and exponentials cancel. So two ways of writing one function
give one chain, and a race recognises its clocks however they are written (see ``races``). All steps are strictly
monotone except ``floor`` and ``rounded``, which keep the order and have jumps. A smooth increasing function is a step
of its own: a ``Rule`` with its value, its inverse, its range and bounds of its slope. A row of ``primitives`` gives its
names in the libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from math import atan, erf, erfc, log1p, sqrt, tan
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.cpython.patches import ceil, copysign, exp, floor, frexp, inf, isfinite, ldexp, log, pi
from specverify.laws.rounding import FLOAT64

# Monotone


class Rule(NamedTuple):
    """A step of a chain: a strictly increasing smooth function such as ``tanh``; ``of`` computes it for an array."""

    of: Callable[[Any], Any]
    back: Callable[[Any], Any]
    """The inverse function, on numbers inside ``images``."""
    images: tuple[float, float]
    """Infimum and supremum of the values; neither is attained."""
    slopes: Callable[[Any, Any], tuple[Any, Any]]
    """``slopes(low, high)``: element-wise bounds of the derivative between ``low`` and ``high``."""

    def image(self, value: float) -> float:
        """Return the value of the function at ``value``, a number or an infinity."""
        with np.errstate(all="ignore"):
            return float(self.of(value))

    def inverse(self, images: Any) -> Any:
        """Return the inverse of the function at ``images``; -inf or inf for an image below or above its range."""
        low, high = self.images
        inside = (images > low) & (images < high)
        with np.errstate(all="ignore"):
            result = self.back(np.where(inside, images, 0.5 * (max(low, -1.0) + min(high, 1.0))))
        return np.where(inside, result, np.where(images <= low, -inf, inf))


def _even(slope: Callable[[Any], Any], *, rises: bool = False) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return a function of (low, high) that returns the least and the greatest value of ``slope`` between the two.

    ``slope`` is an even function that decreases with growing distance from 0, or increases if ``rises``.
    """

    def slopes(low: Any, high: Any) -> tuple[Any, Any]:
        near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        far = np.maximum(np.abs(low), np.abs(high))
        with np.errstate(all="ignore"):
            ends = slope(far), slope(near)
        return ends[::-1] if rises else ends

    return slopes


def _each(function: Callable[[float], float]) -> Callable[[Any], Any]:
    """Extend ``function``, a function of positive numbers, to an odd function of arrays, and return it."""
    of_positive = np.vectorize(function, otypes=[float])

    def of(values: Any) -> Any:
        size, zero = np.abs(values), np.equal(values, 0)
        return np.where(zero, 0.0, np.sign(values) * of_positive(np.where(zero, 1.0, size)))

    return of


_NORMAL = NormalDist()
RARELY, MOST_OMITTED = 2.0**-23, 2.0**-16
"""What is less likely than the first is left out for one random number, if it is less likely than the second for all
numbers of a vector or a race together. The law is then known within this probability (``rounding.known_within``)."""
_SMALLEST_TAIL = 1e-300
"""A tail probability up to this counts as 0."""


def _tail(x: float) -> float:
    """Return the probability that a logistic number exceeds ``x`` (positive)."""
    return exp(-x) / (1 + exp(-x))


def _cauchy(x: float) -> float:
    return 1 / tan(pi * _tail(x)) if _tail(x) > _SMALLEST_TAIL else inf


def _logistic_of_cauchy(y: float) -> float:
    tail = atan(1 / y) / pi
    return log1p(-tail) - log(tail) if tail > 0 else inf


def _normal(x: float) -> float:
    return -_NORMAL.inv_cdf(_tail(x)) if _tail(x) > _SMALLEST_TAIL else inf


def _logistic_of_normal(y: float) -> float:
    tail = erfc(y / sqrt(2)) / 2
    return log1p(-tail) - log(tail) if tail > _SMALLEST_TAIL else inf


def _slope_of_normal(x: Any) -> Any:
    y = RULES["normal"].of(x)
    return np.where(np.isinf(y), 0.0, np.exp(y * y / 2 - x - 2 * np.log1p(np.exp(-x))) * sqrt(2 * pi))


def _slope_of_cauchy(x: Any) -> Any:
    tail = np.exp(-x) / (1 + np.exp(-x))
    return pi * tail * (1 - tail) / np.sin(pi * tail) ** 2


def _inverse_of_erf(value: float) -> float:
    return -_NORMAL.inv_cdf((1 - value) / 2) / sqrt(2) if value < 1 else inf


def _laplace(x: float) -> float:
    return x + log1p(exp(-x)) - log(2)


def _logistic_of_laplace(y: float) -> float:
    return y + log1p(-exp(-y) / 2) + log(2) if y < inf else inf


_EVERYTHING = (-inf, inf)
RULES: dict[str, Rule] = {
    "arctan": Rule(np.arctan, np.tan, (-pi / 2, pi / 2), _even(lambda x: 1 / (1 + x * x))),
    "sinh": Rule(np.sinh, np.arcsinh, _EVERYTHING, _even(np.cosh, rises=True)),
    "arcsinh": Rule(np.arcsinh, np.sinh, _EVERYTHING, _even(lambda x: 1 / np.sqrt(1 + x * x))),
    "erf": Rule(_each(erf), _each(_inverse_of_erf), (-1.0, 1.0), _even(lambda x: 2 / sqrt(pi) * np.exp(-x * x))),
    "gudermann": Rule(
        lambda x: 2 * np.arctan(np.tanh(0.5 * x)), lambda y: np.arcsinh(np.tan(y)), (-pi / 2, pi / 2),
        _even(lambda x: 1 / np.cosh(x)),
    ),
    "normal": Rule(_each(_normal), _each(_logistic_of_normal), _EVERYTHING, _even(_slope_of_normal)),
    "cauchy": Rule(_each(_cauchy), _each(_logistic_of_cauchy), _EVERYTHING, _even(_slope_of_cauchy, rises=True)),
    "laplace": Rule(_each(_laplace), _each(_logistic_of_laplace), _EVERYTHING,
                    _even(lambda x: 1 / (1 + np.exp(-x)), rises=True)),
}  # fmt: skip
"""NumPy name -> monotone function. ``normal``, ``cauchy`` and ``laplace`` map a logistic number to a number of that
law, and ``gudermann`` is an arc sine of a hyperbolic tangent. These are defined on all real numbers, while the library
functions are not."""


# Steps


SCALES = {"times", "power"}
STEPPED = {"floor", "rounded"}
"""Steps whose values have positive probability."""
_LARGEST_LOGARITHM = 700.0
"""Below this the exponential is a finite ordinary float."""


class MonotoneStep(NamedTuple):
    """One step of a chain of monotone functions: its ``name`` and, for some names, its parameter ``number``.

    ``plus``, ``times`` and ``power`` have one; ``log``, ``exp`` and ``floor`` none. ``rounded`` rounds to ``number``
    significant bits. Other names are those of ``steps.RULES``.
    """

    name: str
    number: float = 0.0

    @property
    def increasing(self) -> bool:
        """Return whether the step preserves the order of numbers; otherwise it reverses the order."""
        return self.number > 0 or self.name not in SCALES

    def of(self, value: float) -> float:  # noqa: PLR0911 - one line a kind
        """Return the step's function at ``value``; at an end of its domain the limit, for example -inf for log(0)."""
        if self.name == "plus":
            return value + self.number
        if self.name == "times":
            return value * self.number if value else 0.0
        if self.name == "log":
            return log(value) if value > 0 else -inf
        if self.name == "exp":
            return exp(value) if value < _LARGEST_LOGARITHM else inf
        if self.name in RULES:
            return RULES[self.name].image(value)
        if self.name == "power":
            return _power(value, self.number)
        return _stepped(self, value) if isfinite(value) else value

    def back(self, bound: float) -> float:
        """Return the number whose image is ``bound``; ``-inf`` or ``inf`` outside the range.

        Not defined for ``STEPPED``.
        """
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
"""The steps of ``1 - u``, which is uniform if ``u`` is."""


def plus(number: float) -> MonotoneStep:
    """Return the step that adds a finite number."""
    return MonotoneStep("plus", number)


def times(number: float) -> MonotoneStep:
    """Return the step that multiplies by a finite number other than 0."""
    return MonotoneStep("times", number)


def rounded(bits: int) -> MonotoneStep:
    """Return the step that rounds to the nearest float with ``bits`` significant bits."""
    return MonotoneStep("rounded", float(bits))


def _stepped(step: MonotoneStep, value: float) -> float:
    """Return ``value`` after ``step``, a ``floor`` or ``rounded`` step; overflow of the dtype is not modelled."""
    if step.name == "floor":
        return float(floor(value))
    (fraction, exponent), bits = frexp(value), int(step.number)
    return ldexp(round(ldexp(fraction, bits)), exponent - bits)


def _edge_of_rounded(bound: float, bits: int, *, or_equal: bool) -> tuple[float, bool]:
    """Return the supremum s of the numbers whose rounded value is below ``bound``, and whether s is one of them.

    ``bits`` are the significant bits of the rounding; ties round to even. With ``or_equal`` the rounded value may equal
    ``bound``.
    """
    if not bound:
        return bound, or_equal
    fraction, exponent = frexp(bound)
    above, power_of_two = ldexp(fraction, bits), 2 ** (bits - 1)
    first = floor(above) + 1 if or_equal else ceil(above)
    back = {power_of_two: 0.25, 1 - power_of_two: 0.75}.get(first, 0.5)  # nearer to 0 than it floats are twice as close
    return ldexp(first - back, exponent - bits), first % 2 == 1


def power(exponent: float) -> MonotoneStep:
    """Return the step that raises a positive number to a finite exponent other than 0."""
    return MonotoneStep("power", exponent)


def _power(value: float, exponent: float) -> float:
    if value <= 0:
        return -inf if value < 0 < exponent else 0.0 if exponent > 0 else inf
    try:
        return float(pow(value, exponent))
    except OverflowError:
        return inf


def carried_back(steps: tuple[MonotoneStep, ...], bound: float, *, or_equal: bool = False) -> float:
    """Return the argument a at which the result of the chain ``steps`` crosses ``bound``.

    On one side of a the result is below the bound (or equal, with ``or_equal``), on the other it is not.
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
    """Return the chain ``steps`` followed by ``step``, in normal form.

    A factor of the program that is nearly 1 is kept: with the largest of ``cumsum(p)``, ``u * total < total`` is always
    true. A factor or exponent that results from joining steps may be 1 up to rounding, and is left out.
    """
    if _is_identity(step, 0.0):
        return steps
    rest, last = steps[:-1], steps[-1] if steps else step
    rule = _RULES.get((last.name, step.name))
    if not steps or rule is None or _stays(rest, last, step):
        return (*steps, step)
    for each in rule(last.number, step):
        rest = rest if _is_identity(each, FLOAT64) else pushed(rest, each)
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
"""Names of two successive steps -> the steps that replace them; the function gets the first step's number and the
second step."""


def _stays(rest: tuple[MonotoneStep, ...], last: MonotoneStep, step: MonotoneStep) -> bool:
    """Return whether ``last`` and the ``step`` after it stay two steps, although ``_RULES`` has a rule to join them.

    They stay two where the joined step would be less exact, or would hide a form that is recognised elsewhere, such as
    exp(c log u). ``rest`` are the steps of the chain before ``last``.
    """
    if step.name == "rounded":
        return step.number < last.number
    if step == EXP:
        return rest[-1:] != (LOG,) if last.name == "times" else abs(last.number) > _LARGEST_LOGARITHM
    return last.name == "times" and last.number == -1 and step.name in {"log", "power"}


def _is_identity(step: MonotoneStep, rounding: float) -> bool:
    """Return whether ``step`` adds 0, or has a factor or an exponent that differs from 1 by at most ``rounding``."""
    return step.number == 0 if step.name == "plus" else step.name in SCALES and abs(step.number - 1) <= rounding
