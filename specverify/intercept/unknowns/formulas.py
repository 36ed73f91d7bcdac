"""Quantities made of several uniform numbers, written down apart from who drew them, and enclosures of their values.

A ``Formula`` names its uniform numbers by their places among some. ``enclosed`` bounds its value, and how fast it
grows with each of them, on boxes: float64 rounded outwards, so that what is said of a box is true of all points in it.
"""

from __future__ import annotations

from math import inf  # by name: inside a block ``math`` has others
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.intercept.unknowns.monotone import RULES
from specverify.intercept.unknowns.steps import STEPPED, MonotoneStep

OUTWARDS = 1e-15
"""More than NumPy rounds in one operation, relative to the result."""
Ends: TypeAlias = tuple[Any, Any]
"""Lower and upper bounds, arrays of one shape."""


class Formula(NamedTuple):
    """``steps`` of what a name makes of its operands, and then clamped."""

    name: str
    """``uniform``, ``number``, ``add``, ``multiply`` or ``maximum``."""
    operands: tuple[Any, ...]
    """Formulas; the place of a uniform number; a number."""
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -inf
    high: float = inf


class Fact(NamedTuple):
    """That a quantity is below a bound, or is not."""

    formula: Formula
    bound: float
    or_equal: bool = False
    true: bool = True


class Enclosed(NamedTuple):
    """What is known of a quantity on each of some boxes."""

    value: Ends
    """``[boxes]``."""
    slopes: Ends
    """``[uniform numbers, boxes]``: of differences of values, by those of each uniform number."""


def enclosed(formula: Formula, low: Any, high: Any) -> Enclosed:
    """Return what is known on the boxes from ``low`` to ``high``, both ``[uniform numbers, boxes]``."""
    with np.errstate(all="ignore"):
        return _enclosed(formula, low, high)


def _enclosed(formula: Formula, low: Any, high: Any) -> Enclosed:
    if formula.name == "uniform":
        slopes = np.zeros_like(low)
        slopes[formula.operands[0]] = 1.0
        found = Enclosed((low[formula.operands[0]], high[formula.operands[0]]), (slopes, slopes))
    elif formula.name == "number":
        number = np.full(low.shape[1], float(formula.operands[0]))
        found = Enclosed((number, number), (np.zeros_like(low), np.zeros_like(low)))
    else:
        one, other = (_enclosed(each, low, high) for each in formula.operands)
        found = _COMBINED[formula.name](one, other)
    for step in formula.steps:
        found = _stepped(found, step)
    return _clamped(found, formula.low, formula.high)


# Two quantities


def _sum(one: Enclosed, other: Enclosed) -> Enclosed:
    return Enclosed(_added(one.value, other.value), _added(one.slopes, other.slopes))


def _product(one: Enclosed, other: Enclosed) -> Enclosed:
    slopes = _added(_multiplied(one.slopes, other.value), _multiplied(other.slopes, one.value))
    return Enclosed(_multiplied(one.value, other.value), slopes)


def _larger(one: Enclosed, other: Enclosed) -> Enclosed:
    value = np.maximum(one.value[0], other.value[0]), np.maximum(one.value[1], other.value[1])
    first, second = one.value[0] > other.value[1], other.value[0] > one.value[1]
    least, most = np.minimum(one.slopes[0], other.slopes[0]), np.maximum(one.slopes[1], other.slopes[1])
    slopes = (np.where(first, one.slopes[end], np.where(second, other.slopes[end], hull))
              for end, hull in enumerate((least, most)))  # fmt: skip
    return Enclosed(value, (next(slopes), next(slopes)))


_COMBINED = {"add": _sum, "multiply": _product, "maximum": _larger}


# Steps of one


def _stepped(of: Enclosed, step: MonotoneStep) -> Enclosed:
    low, high = of.value
    if step.name in STEPPED:
        ends = tuple(np.vectorize(step.of, otypes=[float])(end) for end in (low, high))
        flat = np.where(ends[0] == ends[1], 0.0, inf)
        return Enclosed((ends[0], ends[1]), _multiplied(of.slopes, (0.0 * low, flat)))
    if step.name == "plus":
        return Enclosed(_outwards(low + step.number, high + step.number), of.slopes)
    if step.name == "times":
        ends = (low * step.number, high * step.number)[:: 1 if step.number > 0 else -1]
        return Enclosed(_outwards(*ends), _multiplied(of.slopes, (np.full_like(low, step.number),) * 2))
    if step.name in {"log", "power"}:  # of what is positive: an end below 0 was rounded outwards
        of = Enclosed((np.maximum(low, 0.0), np.maximum(high, 0.0)), of.slopes)
        low, high = of.value
    value, growth = _smooth(step, low, high)
    return Enclosed(_outwards(*value), _multiplied(of.slopes, _outwards(*growth)))


def _smooth(step: MonotoneStep, low: Any, high: Any) -> tuple[Ends, Ends]:
    """Return the images of two numbers, the smaller one first, and the slopes between them."""
    if step.name in RULES:
        rule = RULES[step.name]
        return (rule.of(low), rule.of(high)), rule.slopes(low, high)
    if step.name == "log":
        return (np.log(low), np.log(high)), (1 / high, 1 / low)
    if step.name == "exp":
        ends = np.exp(low), np.exp(high)
        return ends, ends
    first, last = (np.power(low, step.number), np.power(high, step.number))[:: 1 if step.number > 0 else -1]
    growth = [step.number * np.power(each, step.number - 1) for each in (low, high)]
    return (first, last), (np.fmin(*growth), np.fmax(*growth))


def _clamped(of: Enclosed, low: float, high: float) -> Enclosed:
    if (low, high) == (-inf, inf):
        return of
    least, most = of.value
    inside, outside = (least >= low) & (most <= high), (most <= low) | (least >= high)
    slopes = _multiplied(of.slopes, (inside * 1.0, np.where(outside, 0.0, 1.0)))
    return Enclosed((np.clip(least, low, high), np.clip(most, low, high)), slopes)


# Bounds


def _added(one: Ends, other: Ends) -> Ends:
    return _outwards(one[0] + other[0], one[1] + other[1])


def _multiplied(one: Ends, other: Ends) -> Ends:
    """Return the bounds of products; 0 times what has no bound is 0, as 0 is."""
    products = [np.where((a == 0) | (b == 0), 0.0, a * b) for a in one for b in other]
    return _outwards(np.minimum.reduce(products), np.maximum.reduce(products))


def _outwards(low: Any, high: Any) -> Ends:
    """Return bounds that hold after rounding, infinite ones where there is no number."""
    least = np.where(np.isfinite(low), low - OUTWARDS * np.abs(low), low) + 0.0  # whose zero has no sign
    most = np.where(np.isfinite(high), high + OUTWARDS * np.abs(high), high) + 0.0
    return np.where(np.isnan(least), -inf, least), np.where(np.isnan(most), inf, most)
