"""Joint constraints: comparisons of quantities made of several uniform numbers, and their probabilities.

The result of such a comparison is drawn with its probability given the results of all earlier comparisons. Products
that contain each other have a closed form. Otherwise the probability is known to lie between two bounds, and half their
distance counts as a rounding error of the law. If the bounds are too far apart, or if it is not certain that a result
is possible, the comparison is refused with the reason.

**Enclosures.** A ``Formula`` refers to its uniform numbers by index. ``enclosed`` bounds its value and its slopes on
boxes, in float64 rounded outwards, so that a bound holds for all points of a box.

**Branch and bound.** A box in which an enclosure decides every comparison counts as a whole. If a single comparison is
undecided in a box, the quantity lies between two planes, by its slopes, and the volume under a plane is known; the
undecided part of a box of width h is of the order h. The boxes with the largest undecided part are halved until little
is left. All bounds are rounded outwards, so the probability lies between the two returned numbers.

**Products** of uniform numbers have a closed form. ``-log u`` is an exponential time, so that of a product is the time
of the last of several successive arrivals. If each product contains the one before it, as in a cumulative product, each
constraint is a window for an arrival time. Their joint density is ``exp(-s)``, s the last arrival, so the probability
is the integral of a polynomial, piece by piece, against an exponential; it is exact up to decimal rounding. For one
product of n numbers it is ``c (1 + L + ... + L^(n-1) / (n-1)!)`` below c, with ``L = -log c``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from specverify.intercept.cpython.patches import factorial, inf, log, prod
from specverify.intercept.symbolic.steps import EXP, LOG, MIRRORED, RULES, STEPPED, MonotoneStep, carried_back
from specverify.laws.rounding import FLOAT32, LARGEST

ADD, MULTIPLY, MAXIMUM = "add", "multiply", "maximum"
"""Names of the primitives that combine two random numbers."""
VALUE_OF: dict[str, Callable[[float, float], float]] = {ADD: operator.add, MULTIPLY: operator.mul, MAXIMUM: max}
"""Name of a combination -> the function on floats."""

# Enclosures

# Formulas


OUTWARDS = 1e-15
"""Relative widening of a bound, more than NumPy rounds in one operation."""
Ends: TypeAlias = tuple[Any, Any]
"""Lower and upper bounds, arrays of equal shape."""


class Formula(NamedTuple):
    """A quantity as an expression: the operation ``name`` on ``operands``, then ``steps``, then the limits.

    The result of the steps is limited to ``[low, high]``.
    """

    name: str
    """``uniform``, ``number``, ``add``, ``multiply`` or ``maximum``."""
    operands: tuple[Any, ...]
    """Formulas; for ``uniform`` the index of the uniform; for ``number`` its value."""
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -inf
    high: float = inf


class Fact(NamedTuple):
    """The result of a comparison: the quantity ``formula`` is below ``bound`` if ``true``, else it is not.

    With ``or_equal``, "below" includes equality.
    """

    formula: Formula
    bound: float
    or_equal: bool = False
    true: bool = True


class Enclosed(NamedTuple):
    """Bounds of a quantity, such as a sum of uniforms, and of its slopes, on several boxes of uniform numbers.

    ``value`` has the lower and the upper bounds of the quantity, ``slopes`` those of its slopes in each uniform.
    """

    value: Ends
    """Bounds of the value, each ``[boxes]``."""
    slopes: Ends
    """Bounds of the difference quotients with respect to each uniform, each ``[uniforms, boxes]``."""


def enclosed(formula: Formula, low: Any, high: Any) -> Enclosed:
    """Return bounds of the value and of the slopes of a formula, on every box of uniform numbers.

    ``low`` and ``high`` have the lower and the upper corners of the boxes, each ``[uniforms, boxes]``.
    """
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


_COMBINED = {ADD: _sum, MULTIPLY: _product, MAXIMUM: _larger}


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
    if step.name in {LOG.name, "power"}:  # of what is positive: an end below 0 was rounded outwards
        of = Enclosed((np.maximum(low, 0.0), np.maximum(high, 0.0)), of.slopes)
        low, high = of.value
    value, growth = _smooth(step, low, high)
    return Enclosed(_outwards(*value), _multiplied(of.slopes, _outwards(*growth)))


def _smooth(step: MonotoneStep, low: Any, high: Any) -> tuple[Ends, Ends]:
    """Return bounds of the values of ``step`` on the intervals from ``low`` to ``high``, and bounds of its slope there.

    ``low`` and ``high`` have one interval for each box of uniform numbers. Both results are pairs (lower bounds, upper
    bounds). Not for ``floor`` and ``rounded``.
    """
    if step.name in RULES:
        rule = RULES[step.name]
        return (rule.of(low), rule.of(high)), rule.slopes(low, high)
    if step.name == LOG.name:
        return (np.log(low), np.log(high)), (1 / high, 1 / low)
    if step.name == EXP.name:
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
    """Return bounds of the product of a number within ``one`` and a number within ``other``.

    0 times infinity counts as 0.
    """
    products = [np.where((a == 0) | (b == 0), 0.0, a * b) for a in one for b in other]
    return _outwards(np.minimum.reduce(products), np.maximum.reduce(products))


def _outwards(low: Any, high: Any) -> Ends:
    """Return ``low`` and ``high`` rounded outwards; a NaN becomes an infinite bound."""
    least = np.where(np.isfinite(low), low - OUTWARDS * np.abs(low), low) + 0.0  # whose zero has no sign
    most = np.where(np.isfinite(high), high + OUTWARDS * np.abs(high), high) + 0.0
    return np.where(np.isnan(least), -inf, least), np.where(np.isnan(most), inf, most)


# Splitting


MOST_UNIFORMS = 4
"""Limit of uniforms in a joint constraint; with more, branch and bound needs too many boxes."""
MOST_BOXES = 40_000
"""Limit of boxes examined for one probability."""
FINE = 1e-7
"""Width of an enclosed probability at which no box is split further."""
SLIGHT = 2.0**-24
"""A result that may be impossible, and is less likely than the spacing of float32 uniforms, is not followed."""
NEAR = 4 * FLOAT32
"""A bound this close to a value of positive probability may equal that value, computed in another way."""
_FLATTEST = 0.02
"""Smallest slope, as a share of the steepest one; flatter slopes are raised to it to avoid cancellation in the volumes.
"""
_STEEPEST = 1e100
"""Limit that stands for an unbounded slope; such a side is halved where it is closest to an end."""
_AT_EDGE = 1e-20
_ROUNDED = 1e-9
"""Bound on the float64 error of the volume under a plane, relative to its box."""


class Share(NamedTuple):
    """Bounds of two volumes of uniform numbers: where a new comparison of them is true, and where it is false.

    A point has one coordinate for each uniform number. Only points that agree with the results of all earlier
    comparisons count. ``yes`` bounds the volume of the points at which the new comparison is true, ``no`` that of the
    points at which it is false. Each is a pair (lower bound, upper bound).
    """

    yes: tuple[float, float]
    no: tuple[float, float]

    @property
    def chance(self) -> tuple[float, float]:
        """Return lower and upper bounds of the probability that the new comparison is true, given the earlier ones."""
        return _ratio(self.yes[0], self.no[1]), _ratio(self.yes[1], self.no[0])

    @property
    def open(self) -> list[int]:
        """Return the results (0: true, 1: false) of the new comparison that are perhaps impossible.

        A result is possible if the volume of the points that give it is positive. Only bounds of this volume are known.
        If the lower bound is 0 and the upper bound is too large to ignore, the result is perhaps impossible.
        """
        return [answer for answer, (low, high) in enumerate(self) if low <= 0 and high > SLIGHT * self.whole]

    @property
    def whole(self) -> float:
        """Return an upper bound of the volume of all points that agree with the earlier comparisons."""
        return self.yes[1] + self.no[1]


def _ratio(one: float, other: float) -> float:
    return one / (one + other) if one > 0 else 0.0


class _Boxes(NamedTuple):
    """Boxes of uniform numbers, with bounds of two volumes for each box.

    ``low`` and ``high`` are two opposite corners of each box. Both volumes contain only points of the box that agree
    with all earlier comparisons: ``yes`` those at which the new comparison is true, ``no`` those at which it is false.
    """

    low: Any
    """Lower corners, ``[uniforms, boxes]``."""
    high: Any
    yes: Any
    """``[2, boxes]``: lower and upper bound of the volume in which the answer is yes."""
    no: Any
    halved: Any
    """``[boxes]``: index of the side to halve."""

    @property
    def unsure(self) -> Any:
        return np.maximum(self.yes[1] - self.yes[0], self.no[1] - self.no[0])

    def taken(self, which: Any) -> _Boxes:
        return _Boxes(*(part[..., which] for part in self))


@lru_cache(maxsize=1 << 12)
def share(ends: tuple[tuple[float, float], ...], facts: tuple[Fact, ...], asked: Fact, most: int = MOST_BOXES) -> Share:
    """Return bounds of the volumes in which the comparison ``asked`` is true, and in which it is false.

    Only points that agree with ``facts``, the results of earlier comparisons, count. ``ends`` has an interval (low,
    high) for each uniform number. The bounds are improved until they are good enough or ``most`` boxes were evaluated.
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
    """Return the lower and the upper corners of the boxes with which the division starts, each ``[uniforms, boxes]``.

    There is one box, ``ends``, with an interval for each uniform. If ``asked`` compares a single uniform, the box is
    cut in two at the bound.
    """
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
    """Return the boxes from ``low`` to ``high``, with bounds of the volumes where a comparison is true or false.

    The comparison is the last item of ``questions``; the other items are the results of earlier comparisons (``Fact``),
    and only points that agree with these count.
    """
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
    """Return, for each box, a lower and an upper bound of the share of the box in which all comparisons are true.

    ``shares`` has such bounds for each comparison alone. The upper bound is the smallest of their upper bounds. The
    lower bound is 1 minus the sum of (1 - lower bound) over all comparisons.
    """
    most = np.minimum.reduce([each[1] for each in shares])
    least = np.maximum(0.0, 1 - sum(1 - each[0] for each in shares))
    return np.stack([np.where(most > 0, least, 0.0), most])


def _under(question: Fact, low: Any, high: Any, middle: Any, widths: Any) -> tuple[Any, Any]:
    """Return (bounds, weights): bounds of the share of each box in which a quantity is below its bound.

    ``question`` has the quantity and the bound. The weights, one for each side of each box, are upper bounds of the
    change of the quantity along the side; the side with the largest weight is halved next. A box has the corners
    ``low`` and ``high``, the centre ``middle`` and the side lengths ``widths``.
    """
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
    """Return whether ``formula`` is a single uniform without steps and limits."""
    return formula.name == "uniform" and not formula.steps and (formula.low, formula.high) == (-inf, inf)


def _beneath(slopes: Any, distance: Any) -> Any:
    """Return the share of the unit cube that lies below a plane, for each box.

    A point of the cube lies below if its dot product with ``slopes`` ``[uniforms, boxes]`` is below ``distance``
    ``[boxes]``.
    """
    total, number = slopes.sum(axis=0), len(slopes)
    turned = distance > total / 2
    within = np.clip(np.where(turned, total - distance, distance), 0.0, None)
    volume = sum(
        (-1) ** sum(corner) * np.maximum(within - np.dot(corner, slopes), 0.0) ** number
        for corner in product((0, 1), repeat=number)
    )
    volume = volume / (factorial(number) * prod(slopes))
    return np.where(turned, 1 - volume, volume)


# Together

# Arrivals


DIGITS = Context(prec=60)
"""Decimal precision: it exceeds the cancellation in the differences of about ten windows."""
Polynomial: TypeAlias = list[Decimal]
"""Coefficients, the constant first."""


class Window(NamedTuple):
    """The interval from ``low`` to ``high`` in which one arrival of a Poisson process must lie.

    The arrival is the ``number``-th one after the arrival of the preceding window, or after time 0 for the first
    window.
    """

    number: int
    low: float
    high: float


class _Segment(NamedTuple):
    start: Decimal
    polynomial: Polynomial
    """Polynomial in the time since the segment's start."""


class _LinearInTime(NamedTuple):
    """A quantity ``constant - rate * t``, or the exponential of this if ``exponential`` is True.

    t is an arrival time: minus the logarithm of the product of the uniforms in ``numbers``.
    """

    numbers: frozenset[tuple[int, bool]]
    """Pairs (index of a uniform, whether 1 - u is used)."""
    rate: float
    constant: float
    exponential: bool


# From facts to windows


def windows(ends: Sequence[tuple[float, float]], facts: Sequence[Fact]) -> tuple[Window, ...] | None:
    """Return the interval (window) that ``ends`` and ``facts`` leave to each arrival time, in order of arrival.

    The arrival time of a product of uniforms u or 1 - u is minus its logarithm. ``ends`` has the interval of each
    uniform. Each product must contain all factors of the one before. Returns None for facts about anything else, and
    without facts. If ``facts`` contradict each other, a window is empty: ``low`` is at least ``high``.
    """
    result: dict[frozenset[tuple[int, bool]], tuple[float, float]] = {}
    for place, (low, high) in enumerate(ends):
        if (low, high) != (0.0, 1.0):
            result[frozenset({(place, False)})] = (-log(high), -log(low) if low > 0 else inf)
    for fact in facts:
        times_of = _times(fact.formula)
        if times_of is None:
            return None
        low, high = _between(times_of, fact)
        before = result.get(times_of.numbers, (0.0, inf))
        result[times_of.numbers] = max(low, before[0]), min(high, before[1])
    chain = sorted(result, key=len)
    nested = all(one < other for one, other in pairwise(chain))
    if not chain or not nested or len({place for place, _ in chain[-1]}) < len(chain[-1]):
        return None
    numbers = [len(each) for each in chain]
    more = [number - before for number, before in zip(numbers, [0, *numbers], strict=False)]
    return tuple(Window(number, *result[each]) for number, each in zip(more, chain, strict=True))


def _between(of: _LinearInTime, fact: Fact) -> tuple[float, float]:
    """Return the earliest and the latest arrival time at which ``fact`` is true.

    ``of`` is the quantity of ``fact`` as a function of the arrival time.
    """
    level = fact.bound if not of.exponential else log(fact.bound) if fact.bound > 0 else -inf
    at = (of.constant - level) / of.rate
    after = fact.true == (of.rate > 0)
    return (max(at, 0.0), inf) if after else (0.0, at)


def _times(formula: Formula) -> _LinearInTime | None:
    """Return ``formula`` as a function of one arrival time; None if it is not the function of a product of uniforms."""
    if (formula.low, formula.high) != (-inf, inf) and not _never_reached(formula):
        return None
    if formula.name == "uniform":
        flipped = formula.steps[:2] == MIRRORED
        result: _LinearInTime | None = _LinearInTime(
            frozenset({(formula.operands[0], flipped)}), 1.0, 0.0, exponential=True
        )
        steps = formula.steps[2:] if flipped else formula.steps
    elif formula.name in {ADD, MULTIPLY}:
        result, steps = _of_two(formula), formula.steps
    else:
        return None
    for step in steps:
        result = result and _has_steps(result, step.name, step.number)
    return result


def _never_reached(formula: Formula) -> bool:
    """Return whether the limits of ``formula`` have no effect, such as the lower limit 0 of a positive quantity.

    The result is False if the formula is no function of one arrival time (see ``_times``).
    """
    within = _times(formula._replace(low=-inf, high=inf))
    if within is None:
        return False
    ends = (0.0, inf) if within.exponential else (-inf, inf)
    return formula.low <= ends[0] and formula.high >= ends[1]


def _of_two(formula: Formula) -> _LinearInTime | None:
    one, other = map(_times, formula.operands)
    exponential = formula.name == MULTIPLY
    if one is None or other is None or one.rate != other.rate or one.numbers & other.numbers:
        return None
    if not one.exponential == other.exponential == exponential:
        return None
    return _LinearInTime(one.numbers | other.numbers, one.rate, one.constant + other.constant, exponential)


def _has_steps(of: _LinearInTime, name: str, number: float) -> _LinearInTime | None:
    if name in {LOG.name, EXP.name}:
        return of._replace(exponential=name == EXP.name) if of.exponential == (name == LOG.name) else None
    if name == "plus":
        return None if of.exponential else of._replace(constant=of.constant + number)
    if name == "times" and of.exponential:
        return of._replace(constant=of.constant + log(number)) if number > 0 else None
    if name == "times" or (name == "power" and of.exponential):
        return of._replace(constant=of.constant * number, rate=of.rate * number)
    return None


# The probability of windows


@lru_cache(maxsize=1 << 14)
def probability(of: tuple[Window, ...]) -> Decimal:
    """Return the probability that every arrival with a window in ``of`` lies in its window.

    The arrivals are those of a Poisson process of rate 1, and the windows are in the order of their arrivals.
    """
    with localcontext(DIGITS):
        density = [_Segment(Decimal(0), [])]
        for place, window in enumerate(of):
            more = window.number
            if place == 0:
                density, more = [_Segment(Decimal(0), [Decimal(1)])], more - 1
            for _ in range(more):
                density = _integral(density)
            density = _within(density, window)
            if not density:
                return Decimal(0)
        return sum((_mass(piece, end) for piece, end in _with_ends(density)), Decimal(0))


def _with_ends(pieces: list[_Segment]) -> list[tuple[_Segment, Decimal | None]]:
    """Return each piece with its end: the start of the next piece, or None for the last piece."""
    return list(zip(pieces, [*(piece.start for piece in pieces[1:]), None], strict=True))


def _integral(pieces: list[_Segment]) -> list[_Segment]:
    """Return the integral of a piecewise polynomial from the start of its first piece to t, as a function of t.

    The result is a piecewise polynomial with the same pieces.
    """
    result, total = [], Decimal(0)
    for piece, end in _with_ends(pieces):
        result.append(_Segment(piece.start, [total, *(c / (k + 1) for k, c in enumerate(piece.polynomial))]))
        if end is not None:
            total = _value(result[-1].polynomial, end - piece.start)
    return result


def _within(pieces: list[_Segment], window: Window) -> list[_Segment]:
    """Return the piecewise polynomial ``pieces`` restricted to ``window``, and 0 after it; [] for an empty window."""
    if window.low >= window.high:
        return []
    low, high = Decimal(window.low), None if window.high == inf else Decimal(window.high)
    result = []
    for piece, end in _with_ends(pieces):
        if (end is None or end > low) and (high is None or piece.start < high):
            start = max(low, piece.start)
            result.append(_Segment(start, _moved(piece.polynomial, start - piece.start)))
    return result if high is None else [*result, _Segment(high, [])]


def _mass(piece: _Segment, end: Decimal | None) -> Decimal:
    """Return the integral of ``exp(-s)`` times the polynomial of ``piece``, from its start to ``end``.

    ``end`` None stands for infinity.
    """
    derivatives = [piece.polynomial]
    while derivatives[-1]:
        derivatives.append([k * c for k, c in enumerate(derivatives[-1])][1:])
    result = sum((each[0] for each in derivatives if each), Decimal(0))
    if end is not None:
        length = end - piece.start
        result -= (-length).exp() * sum((_value(each, length) for each in derivatives), Decimal(0))
    return (-piece.start).exp() * result


def _value(polynomial: Polynomial, at: Decimal) -> Decimal:
    total = Decimal(0)
    for coefficient in reversed(polynomial):
        total = total * at + coefficient
    return total


def _moved(polynomial: Polynomial, by: Decimal) -> Polynomial:
    """Return the polynomial f(t + by) for the polynomial f, by repeated Horner schemes."""
    result = list(polynomial)
    for first in range(len(result) - 1):
        for place in range(len(result) - 2, first - 1, -1):
            result[place] += by * result[place + 1]
    return result


# Together


NEVER = 2.0**-54
"""Smaller than the probability of any value of a float64 uniform."""


class Constrained(Protocol):
    """A uniform number between ``low`` and ``high``, with its joint constraints ``together`` with other numbers.

    ``together`` is None if there are none.
    """

    low: float
    high: float
    together: Together | None


class Quantity(Protocol):
    """A function of several uniform numbers that can be written as a ``Formula``."""

    def formula(self, place_of: Callable[[Constrained], int]) -> Formula:
        """Return the quantity as a formula in which each uniform is given by its index, ``place_of(uniform)``."""


class JointAnswer(NamedTuple):
    """The result of an earlier comparison: the quantity ``of`` is below ``bound`` if ``true``, else it is not.

    With ``or_equal``, "below" includes equality.
    """

    of: Quantity
    bound: float
    or_equal: bool
    true: bool

    def implies(self, of: Quantity, bound: float, *, or_equal: bool) -> bool:
        """Return whether this result determines another comparison, of the quantity ``of`` with ``bound``.

        The comparison is whether ``of`` is below ``bound``, or with ``or_equal`` at most ``bound``. Its result may be
        determined to be true or to be false.
        """
        if of != self.of or (bound == self.bound and or_equal not in {self.or_equal, self.true}):
            return False
        return bound >= self.bound if self.true else bound <= self.bound


class Together:
    """Several uniform numbers, and the results of comparisons that concern more than one of them.

    Results about a single uniform are stored as the interval of the uniform.
    """

    def __init__(self, members: Sequence[Constrained], answers: Sequence[JointAnswer] = ()) -> None:
        """Store the uniforms ``members``, and ``answers``, the results of comparisons of quantities of these."""
        self.members, self.answers = list(members), list(answers)

    def chance(self, of: Quantity, bound: float, *, or_equal: bool) -> Chance:
        """Return the probability that ``of``, a quantity of the members, is below ``bound``, given all results.

        ``or_equal`` states that "below" includes equality.
        """
        implied = [answer.true for answer in self.answers if answer.implies(of, bound, or_equal=or_equal)]
        if implied:
            return Chance(float(implied[0]))
        places = {id(known): place for place, known in enumerate(self.members)}

        def fact(answer: JointAnswer) -> Fact:
            formula = answer.of.formula(lambda known: places[id(known)])
            return Fact(formula, answer.bound, answer.or_equal, answer.true)

        ends = tuple((known.low, known.high) for known in self.members)
        return _chance_of_fact(ends, tuple(map(fact, self.answers)), fact(JointAnswer(of, bound, or_equal, true=True)))

    def learn(self, answer: JointAnswer) -> None:
        """Add ``answer``, the result of a comparison, to the constraints of every member.

        Afterwards all members share these constraints.
        """
        self.answers.append(answer)
        for known in self.members:
            known.together = self


class Chance(NamedTuple):
    """The probability ``middle``, with an error of at most ``within``.

    ``refusal`` is the reason why the probability is not known well enough; "" if it is.
    """

    middle: float
    within: float = 0.0
    refusal: str = ""


def among(given: Sequence[Constrained]) -> Together:
    """Return the group that consists of ``given`` and of all uniforms that have joint constraints with one of them.

    The group contains the results of all comparisons of its members so far.
    """
    groups = list(dict.fromkeys(known.together or Together([known]) for known in given))
    return Together(
        list(dict.fromkeys(known for group in groups for known in group.members)),
        [answer for group in groups for answer in group.answers],
    )


@lru_cache(maxsize=1 << 14)
def _chance_of_fact(ends: tuple[tuple[float, float], ...], facts: tuple[Fact, ...], asked: Fact) -> Chance:
    closed = _in_closed_form(ends, facts, asked)
    if closed is not None:
        return Chance(0.0 if closed < NEVER else 1.0 if 1 - closed < NEVER else closed)
    if len(ends) > MOST_UNIFORMS:
        return Chance(0.5, 0.5, f"{len(ends)} random numbers are compared together, and {MOST_UNIFORMS} can be at most")
    result = _of_one_quantity(ends, facts, asked) or share(ends, facts, asked)
    if result.whole <= 0:
        return Chance(0.5, 0.5, "random numbers are compared together after answers that can hardly come together")
    if result.open:
        what = "random numbers are compared jointly, and whether one of the results is possible cannot be determined"
        return Chance(0.5, 0.5, f"{what} by boxes; that they are compared with is as good as a value they often have, "
                                "or as an earlier answer")  # fmt: skip
    for certain, (least, most) in ((1.0, result.no), (0.0, result.yes)):
        if least <= 0:
            return Chance(certain, float(most / result.whole))
    low, high = result.chance
    within = (high - low) / 2
    refusal = (
        f"{len(ends)} random numbers are compared together, and the probability of the answer is only known to lie "
        f"between {low:.6g} and {high:.6g}; a verdict needs bounds at most {LARGEST:g} apart: compare fewer together"
    )
    return Chance(float(low + within), float(within), refusal if high - low > LARGEST else "")


def _of_one_quantity(ends: Any, facts: tuple[Fact, ...], asked: Fact) -> Share | None:
    """Return the volumes in which ``asked`` is true and false, if ``asked`` and ``facts`` compare one quantity.

    ``facts`` are the results of earlier comparisons, ``ends`` the intervals of the uniforms. The formulas may differ in
    their steps. Returns None for several quantities, without ``facts``, and for a formula with limits or jumps.
    """
    levels = [_level(fact) for fact in (*facts, asked)]
    if not facts or None in levels or len({fact.formula[:2] for fact in (*facts, asked)}) > 1:
        return None
    *given, (at, above) = [level for level in levels if level is not None]
    low = max((level for level, below in given if not below), default=-inf)
    high = min((level for level, below in given if below), default=inf)
    core = asked.formula._replace(steps=())
    least, most = (prod(end - start for start, end in ends) * (1 + way * OUTWARDS * len(ends)) for way in (-1, 1))
    ladder = [share(ends, (), Fact(core, level)).yes if abs(level) < inf else (least, most) if level > 0 else (0.0, 0.0)
              for level in (low, min(max(at, low), high), high)]  # fmt: skip
    parts = [(0.0, 0.0) if one == other else (max(0.0, other[0] - one[1]), max(0.0, other[1] - one[0]))
             for one, other in pairwise(ladder)]  # fmt: skip
    return Share(*(parts if above else parts[::-1]))


def _level(fact: Fact) -> tuple[float, bool] | None:
    """Return ``fact`` as a statement about its quantity before the steps: (bound, whether this is below the bound).

    For example, "exp(x) is below 1" becomes (0, True) for x. Returns None for a quantity with limits, or with steps
    that have jumps.
    """
    formula = fact.formula
    if (formula.low, formula.high) != (-inf, inf) or any(step.name in STEPPED for step in formula.steps):
        return None
    turns = sum(not step.increasing for step in formula.steps)
    return carried_back(formula.steps, fact.bound), fact.true == (turns % 2 == 0)


def _in_closed_form(ends: Any, facts: tuple[Fact, ...], asked: Fact) -> float | None:
    """Return the probability that ``asked`` is true, given ``facts``, if all concern nested products of uniforms.

    ``facts`` are the results of earlier comparisons, ``ends`` the intervals of the uniforms. Returns None for other
    comparisons, and if ``facts`` have probability 0.
    """
    result = windows(ends, (*facts, asked))
    if result is None:
        return None
    known = bool(facts) or any(each != (0.0, 1.0) for each in ends)
    given = windows(ends, facts) if known else ()
    if given is None:
        return None
    with localcontext(DIGITS):
        whole = probability(given) if given else 1
        return float(probability(result) / whole) if whole else None
