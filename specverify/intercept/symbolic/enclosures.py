"""Quantities made of several uniform numbers, written down apart from who drew them, and enclosures of their values.

A ``Formula`` names its uniform numbers by their places among some. ``enclosed`` bounds its value, and how fast it
grows with each of them, on boxes: float64 rounded outwards, so that what is said of a box is true of all points in it.

Probabilities of what is asked of several uniform numbers together, between bounds: by splitting boxes.

A box in which an enclosure decides every comparison counts as a whole. In one where a single comparison is open, the
quantity lies between two planes, by its slopes, and the volume under a plane is known: what is left open of a box of
width h is some h of it. The boxes of which most is open are halved until little is left. Every bound is rounded
outwards, so the probability lies between the two that are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.intercept.symbolic.steps import RULES, STEPPED, MonotoneStep
from specverify.intercept.unpatched import factorial, inf, prod
from specverify.laws.rounding import FLOAT32

# Formulas


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
        result = Enclosed((low[formula.operands[0]], high[formula.operands[0]]), (slopes, slopes))
    elif formula.name == "number":
        number = np.full(low.shape[1], float(formula.operands[0]))
        result = Enclosed((number, number), (np.zeros_like(low), np.zeros_like(low)))
    else:
        one, other = (_enclosed(each, low, high) for each in formula.operands)
        result = _COMBINED[formula.name](one, other)
    for step in formula.steps:
        result = _stepped(result, step)
    return _clamped(result, formula.low, formula.high)


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


# Splitting


MOST_UNIFORMS = 4
"""Uniform numbers that hang together; of more, boxes are too many."""
MOST_BOXES = 40_000
"""Boxes that are looked at for one answer."""
FINE = 1e-7
"""A probability known as well as this is not split further."""
SLIGHT = 2.0**-24
"""An answer that may be impossible, and is no likelier than a uniform of float32 can show, is taken not to come."""
NEAR = 4 * FLOAT32
"""A bound as near as this to a value that has a probability may be that value, computed in another way."""
_FLATTEST = 0.02
"""A slope is raised to this share of the steepest one, so that volumes are no small differences of large numbers."""
_STEEPEST = 1e100
"""What counts as the slope of what has no bound, which is halved where it is nearest to an end."""
_AT_EDGE = 1e-20
_ROUNDED = 1e-9
"""More than a volume under a plane is off by in float64, as a share of its box."""


class Share(NamedTuple):
    """Bounds of the volume in which an answer is yes, and of that in which it is no; all facts are true in both."""

    yes: tuple[float, float]
    no: tuple[float, float]

    @property
    def chance(self) -> tuple[float, float]:
        """Bounds of the probability of yes."""
        return _ratio(self.yes[0], self.no[1]), _ratio(self.yes[1], self.no[0])

    @property
    def open(self) -> list[int]:
        """Which answers, of yes and no, may be impossible and may as well have a probability that floats show."""
        return [answer for answer, (low, high) in enumerate(self) if low <= 0 and high > SLIGHT * self.whole]

    @property
    def whole(self) -> float:
        """The volume of both, at most."""
        return self.yes[1] + self.no[1]


def _ratio(one: float, other: float) -> float:
    return one / (one + other) if one > 0 else 0.0


class _Boxes(NamedTuple):
    """Boxes and what is known of each."""

    low: Any
    """``[uniform numbers, boxes]``"""
    high: Any
    yes: Any
    """``[2, boxes]``: bounds of the volumes."""
    no: Any
    halved: Any
    """``[boxes]``: which side is to be halved."""

    @property
    def unsure(self) -> Any:
        return np.maximum(self.yes[1] - self.yes[0], self.no[1] - self.no[0])

    def taken(self, which: Any) -> _Boxes:
        return _Boxes(*(part[..., which] for part in self))


@lru_cache(maxsize=1 << 12)
def share(ends: tuple[tuple[float, float], ...], facts: tuple[Fact, ...], asked: Fact, most: int = MOST_BOXES) -> Share:
    """Return the volumes in which ``asked`` is true and is not, ``facts`` being true, of the box between ``ends``.

    ``most`` boxes are looked at.
    """
    pool = _looked_at(*_first_boxes(ends, asked), (*facts, asked))
    seen, done = 1, Share((0.0, 0.0), (0.0, 0.0))
    while seen < most:
        settled = pool.unsure <= 0
        done, pool = _together(done, pool.taken(settled)), pool.taken(~settled)
        result = _together(done, pool)
        if not pool.halved.size or (pool.unsure.sum() <= FINE * result.whole and not result.open):
            return result
        worth = (pool.yes, pool.no)[result.open[0]][1] if result.open else pool.unsure
        order = np.argsort(-worth)
        weights = np.cumsum(worth[order])
        number = int(np.searchsorted(weights, 0.9 * weights[-1])) + 1
        children = _looked_at(*_halves(pool.taken(order[:number])), (*facts, asked))
        seen += 2 * number
        rest = pool.taken(order[number:])
        pool = _Boxes(*(np.concatenate(pair, axis=-1) for pair in zip(rest, children, strict=True)))
    return _together(done, pool)


def _first_boxes(ends: tuple[tuple[float, float], ...], asked: Fact) -> tuple[Any, Any]:
    """Return the box, cut in two where a uniform number itself is compared."""
    low, high = np.array(ends).T[..., None]
    if not _is_plain(asked.formula):
        return low, high
    place, cut = asked.formula.operands[0], [low.copy(), high.copy()]
    cut[0][place] = cut[1][place] = min(max(asked.bound, float(low[place, 0])), float(high[place, 0]))
    return np.concatenate([low, cut[0]], axis=1), np.concatenate([cut[1], high], axis=1)


def _together(done: Share, boxes: _Boxes) -> Share:
    sums = (boxes.yes.sum(-1), boxes.no.sum(-1))
    return Share(*((low + more[0], high + more[1]) for (low, high), more in zip(done, sums, strict=True)))


def _halves(boxes: _Boxes) -> tuple[Any, Any]:
    at, middle = (boxes.halved, np.arange(boxes.halved.size)), (boxes.low + boxes.high) / 2
    high, low = boxes.high.copy(), boxes.low.copy()
    high[at] = low[at] = middle[at]
    return np.concatenate([boxes.low, low], axis=1), np.concatenate([high, boxes.high], axis=1)


def _looked_at(low: Any, high: Any, questions: Sequence[Fact]) -> _Boxes:
    """Return what is known of boxes; the last question is what is asked, those before it are to be true."""
    widths = high - low
    middle = low + widths / 2
    shares, pulls = [], np.zeros_like(low)
    for question in questions:
        result, pull = _under(question, low, high, middle, widths)
        if not question.true:
            result = 1 - result[::-1]
        shares.append(result)
        pulls += np.where(result[0] < result[1], pull, 0.0)
    volume = widths.prod(axis=0)
    *given, asked = shares
    yes = _all_of([*given, asked]) * volume
    no = _all_of([*given, 1 - asked[::-1]]) * volume
    widest = (widths / np.maximum(high, FLOAT32)).argmax(axis=0)
    halved = np.where(pulls.max(axis=0) > 0, pulls.argmax(axis=0), widest)  # nowhere steep: the widest
    return _Boxes(low, high, yes, no, halved)


def _all_of(shares: Sequence[Any]) -> Any:
    """Return bounds of the share in which all are true: at most that of any, at least what all leave of the whole."""
    most = np.minimum.reduce([each[1] for each in shares])
    least = np.maximum(0.0, 1 - sum(1 - each[0] for each in shares))
    return np.stack([np.where(most > 0, least, 0.0), most])


def _under(question: Fact, low: Any, high: Any, middle: Any, widths: Any) -> tuple[Any, Any]:
    """Return bounds of the share of each box in which a quantity is below its bound, and how much each side matters."""
    formula, bound = question.formula, question.bound
    (least, most), (down, up) = enclosed(formula, low, high)
    with np.errstate(all="ignore"):
        flat = ((down == 0) & (up == 0)).all(axis=0)
        away = np.where(flat, NEAR * np.maximum(1.0, np.maximum(abs(bound), np.abs(least))), 0.0)
        below = (most < bound - away) | ((most <= bound) & (question.or_equal | _is_plain(formula)) & (away == 0))
        above = (least > bound + away) | (
            (least >= bound) & ((not question.or_equal) | _is_plain(formula)) & (away == 0)
        )
        steepest = np.fmax(np.abs(down), np.abs(up))
        edge = np.maximum(np.minimum(low, 1 - high), _AT_EDGE)
        pull = np.where(steepest < _STEEPEST, steepest, _STEEPEST / edge) * widths
        central = enclosed(formula, middle, middle).value
        slopes, spread = np.abs(down + up) / 2 * widths, (up - down) / 2 * widths
        value, loose = (central[0] + central[1]) / 2, (central[1] - central[0]) / 2 + spread.sum(axis=0)
        steep = np.maximum(slopes, _FLATTEST * slopes.max(axis=0))
        loose = loose + (steep - slopes).sum(axis=0) / 2 + 1e-14 * (steep.sum(axis=0) + np.abs(value) + abs(bound))
        distance = bound - value + steep.sum(axis=0) / 2
        result = np.stack([_beneath(steep, distance - loose) - _ROUNDED, _beneath(steep, distance + loose) + _ROUNDED])
    result = np.where(np.isnan(result), [[0.0], [1.0]], np.clip(result, 0.0, 1.0))
    result = np.where(flat, [[0.0], [1.0]], result)
    return np.where(below, 1.0, np.where(above, 0.0, result)), pull


def _is_plain(formula: Any) -> bool:
    """Return whether a quantity is a uniform number itself: no value of it has a probability."""
    return formula.name == "uniform" and not formula.steps and (formula.low, formula.high) == (-inf, inf)


def _beneath(slopes: Any, distance: Any) -> Any:
    """Return the share of a unit cube in which the sum of ``slopes`` times its coordinates is below ``distance``."""
    total, number = slopes.sum(axis=0), len(slopes)
    turned = distance > total / 2
    within = np.clip(np.where(turned, total - distance, distance), 0.0, None)
    volume = sum(
        (-1) ** sum(corner) * np.maximum(within - np.dot(corner, slopes), 0.0) ** number
        for corner in product((0, 1), repeat=number)
    )
    volume = volume / (factorial(number) * prod(slopes))
    return np.where(turned, 1 - volume, volume)
