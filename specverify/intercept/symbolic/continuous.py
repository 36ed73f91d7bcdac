"""Symbolic random numbers: functions of one uniform, order statistics, combinations of several, large integers.

**One uniform.** A ``Continuous`` is ``min(max(g(u), low), high)`` with a monotone g, a chain of ``steps``. Clamps are
at the end, because a monotone step commutes with a clamp. A clamp gives its bound a positive probability, and ``floor``
gives one to each of its values. For all other values, "below" and "at most" have the same probability. If a
comparison's bound is within rounding of a value of positive probability without being equal to it, the result depends
on the rounding of the program, and the comparison is refused.

**Several.** A ``Joined`` combines several numbers: sums, products and maxima, followed by steps. It is no function of
one uniform, so a comparison involves all of its uniforms together (``together``). A number may occur in it twice: ``u *
(1 - u)``.

**Large integers.** Integers with more outcomes than can be enumerated occur as seeds. The law does not depend on the
value of a seed, because draws that use it are intercepted. So such a number is compared like any other, and code that
reads it gets a value that differs in every run. Replays detect results that depend on it, as for the random bytes of
the operating system.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.intercept import audit
from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import inf, isclose, isfinite, isinf, isnan
from specverify.intercept.refusals import NeedsValue, give
from specverify.intercept.run import mode
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
from specverify.intercept.symbolic.together import ADD, MAXIMUM, Formula, JointAnswer, Together, among, enclosed
from specverify.intercept.symbolic.uniform import Constraint, Known, Uniform, look, refusal
from specverify.laws import rounding
from specverify.laws.rounding import FLOAT32

# One uniform

NEAR = 4 * FLOAT32
"""Two numbers within this distance, relative to their size or as uniforms, may be one number that was computed twice.
"""


class Continuous(NamedTuple):
    """A symbolic number: a uniform to which functions are applied, then limited to ``[low, high]``.

    ``steps`` are these functions, strictly monotone and applied in order, such as a logarithm and a factor.
    """

    uniform: Uniform
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -inf
    high: float = inf

    def then(self, step: MonotoneStep) -> Continuous:
        """Return the symbolic number that results if the monotone function ``step`` is applied to this one.

        Raises ``NeedsValue`` if a factor or an exponent in the resulting chain is 0 or not finite.
        """
        steps = pushed(self.steps, step)
        if any(not 0 < abs(each.number) < inf for each in steps if each.name in SCALES):
            raise NeedsValue(
                "out-of-range", f"a random number leaves the range of floats ({step.name} {step.number:g})"
            )
        ends = step.of(self.low), step.of(self.high)
        return Continuous(self.uniform, steps, *(ends if step.increasing else ends[::-1]))

    def at_least(self, bound: float) -> Continuous:
        """Return the maximum of the number and ``bound``."""
        return self._replace(low=max(self.low, bound))

    @property
    def increasing(self) -> bool:
        """Return whether the number increases with the uniform."""
        return not self.steps or sum(not step.increasing for step in self.steps) % 2 == 0

    @property
    def clamped(self) -> bool:
        """Return whether a limit takes effect: the value ``low`` or the value ``high`` has a positive probability."""
        return self._mass(self.low) > 0 or self._mass(self.high) < 1

    @property
    def in_steps(self) -> bool:
        """Return whether the number has discrete values, each with a positive probability: its steps round it.

        The steps that do so are ``floor`` and ``rounded``.
        """
        return any(step.name in STEPPED for step in self.steps)

    def may_be(self, number: float) -> bool:
        """Return whether the value ``number`` may have a positive probability; True also if that is not certain.

        There are two cases:

        * ``number`` is ``low`` or ``high``, and the clamp takes effect.
        * The steps contain ``floor`` or ``rounded``. Exception: the value 0, if from the first of these steps on there
          are only ``rounded``, ``times`` and ``power``, because these make no other number 0.
        """
        low, high = self.ends()
        if not low <= number <= high:
            return False
        first = next((place for place, step in enumerate(self.steps) if step.name in STEPPED), len(self.steps))
        after = {step.name for step in self.steps[first:]}
        stepped = bool(after) and (number != 0 or not after <= {"rounded", *SCALES})
        at_an_end = (number == self.low and self._mass(self.low) > 0) or (
            number == self.high and self._mass(self.high) < 1
        )
        return stepped or at_an_end

    def ends(self) -> tuple[float, float]:
        """Return the infimum and the supremum of the values, given the interval in which the uniform lies."""
        known = self.uniform.known
        low, high = known.low, known.high
        for step in self.steps:
            low, high = (step.of(low), step.of(high)) if step.increasing else (step.of(high), step.of(low))
        return min(max(low, self.low), self.high), max(min(high, self.high), self.low)

    def below(self, bound: float, place: str = "", *, or_equal: bool = False) -> bool:
        """Return whether the number is below ``bound``; ``or_equal`` includes equality. False if ``bound`` is NaN.

        ``place`` is the line that compares, by default the current one. Raises ``NeedsValue`` if the bound is within
        rounding of a value that has a positive probability.
        """
        if isnan(bound):
            return False
        return self.uniform.below(self._back(bound, or_equal=or_equal), place) == self.increasing

    def equals(self, number: float, place: str = "") -> bool:
        """Return whether the symbolic number has the value ``number``.

        The result is False unless this value has a positive probability. ``place`` is the line that compares.
        """
        atom = self.in_steps or (number in (self.low, self.high) and self.clamped)
        if not atom:
            self._back(number)
            return False
        return self.below(number, place, or_equal=True) and not self.below(number, place)

    def interval_of(self, bounds: Sequence[float], place: str = "", *, or_equal: bool = True) -> int:
        """Return how many of the non-decreasing ``bounds`` are at most the value (an inverse-CDF lookup).

        With ``or_equal`` False, bounds equal to the value are not counted. ``place`` is the line that compares.
        """
        result = [self._back(bound, or_equal=not or_equal) for bound in bounds]
        if self.increasing:
            return self.uniform.interval_of(result, place)
        return len(result) - self.uniform.interval_of(result[::-1], place)

    def _back(self, bound: float, *, or_equal: bool = False) -> float:
        """Return the bound for the uniform that corresponds to ``bound`` for this number.

        If the number increases with the uniform, "number below ``bound``" means "uniform below the result". If it
        decreases, "number below ``bound``" means "uniform not below the result". ``or_equal``: "below ``bound``"
        includes equality.
        """
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
        """Raise ``NeedsValue`` for a bound within rounding of a value of a ``floor`` or ``rounded`` step, unless equal.

        Rounding of the program would then decide the comparison.
        """
        place = next((n for n, step in enumerate(reversed(self.steps)) if step.name in STEPPED), None)
        if place is None or not isfinite(bound):
            return
        at, last = carried_back(self.steps[len(self.steps) - place :], bound), self.steps[-place - 1]
        whole = at if not isfinite(at) else float(round(at)) if last.name == FLOOR.name else last.of(at)
        if at == whole or not isclose(at, whole, rel_tol=NEAR, abs_tol=NEAR if last.name == FLOOR.name else 0.0):
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
        """Return the probability that the number would be below ``bound`` if it were not limited to ``[low, high]``."""
        if isinf(bound):
            return float(bound > 0)
        share = min(max(self._uniform_at(bound), 0.0), 1.0)
        return share if self.increasing else 1 - share

    def chance_below(self, bound: float) -> float:
        """Return the probability that the number is below ``bound``, given the interval in which its uniform lies."""
        known = self.uniform.known
        at = min(max(self._uniform_at(bound), known.low), known.high)
        return (at - known.low if self.increasing else known.high - at) / (known.high - known.low)


class Extreme(NamedTuple):
    """An order statistic: the number with index ``rank`` if ``parts`` are sorted by value.

    The order is descending if ``largest``, else ascending. At least one of the parts is symbolic.
    """

    parts: tuple[Continuous | float, ...]
    largest: bool = True
    rank: int = 0
    """Index in the order (descending for the largest): 0 is the extreme itself."""

    def then(self, step: MonotoneStep) -> Extreme:
        """Return ``step`` applied to the order statistic, by applying the step to every part."""
        result = tuple(part.then(step) if isinstance(part, Continuous) else step.of(part) for part in self.parts)
        return Extreme(result, self.largest == step.increasing, self.rank)

    def at_least(self, bound: float) -> Extreme:
        """Return the maximum of the number and ``bound``."""
        return Extreme(
            tuple(part.at_least(bound) if isinstance(part, Continuous) else max(part, bound) for part in self.parts),
            self.largest,
            self.rank,
        )

    def may_be(self, number: float) -> bool:
        """Return whether the value ``number`` may have a positive probability."""
        return any(part.may_be(number) if isinstance(part, Continuous) else part == number for part in self.parts)

    def ends(self) -> tuple[float, float]:
        """Return the infimum and the supremum of the possible values."""
        result = [part.ends() if isinstance(part, Continuous) else (part, part) for part in self.parts]
        low, high = map(self._picked, zip(*result, strict=True))
        return low, high

    def _picked(self, values: Iterable[Any]) -> Any:
        """Return the value with the index ``rank`` in the sorted ``values``: descending if ``largest``, else ascending.

        ``values`` has one value for each of ``parts``, such as its upper bound: the result is then a bound of this
        number.
        """
        return sorted(values, reverse=self.largest)[self.rank]

    def below(self, bound: float, place: str = "", *, or_equal: bool = False) -> bool:
        """Return whether this order statistic is below ``bound``.

        The numbers in ``parts`` are compared with ``bound`` one after the other, until the result is determined.
        ``place`` is the line that compares; ``or_equal`` includes equality.
        """
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
        """Return whether the order statistic has the value ``number``; ``place`` is the line that compares."""
        return self.below(number, place, or_equal=True) and not self.below(number, place)

    def interval_of(self, bounds: Sequence[float], place: str = "", *, or_equal: bool = True) -> int:
        """Return how many of the non-decreasing ``bounds`` are at most the value.

        With ``or_equal`` False, bounds equal to the value are not counted. ``place`` is the line that compares.
        """
        result = [
            part.interval_of(bounds, place, or_equal=or_equal)
            if isinstance(part, Continuous)
            else sum(bound <= part if or_equal else bound < part for bound in bounds)
            for part in self.parts
        ]
        return int(self._picked(result))


MOST_ORDERED = 64
"""Limit of random numbers in an order statistic that is compared."""


def at_rank(parts: tuple[Any, ...], rank: int, *, largest: bool) -> Continuous | Extreme | float:
    """Return the element at index ``rank`` in the order of ``parts``: descending if ``largest``, else ascending.

    Raises ``NeedsValue`` for NaN, for a combination of several symbolic numbers, and for more than ``MOST_ORDERED``
    parts.
    """
    if any(isinstance(part, tuple) and not isinstance(part, Continuous) for part in parts):
        raise NeedsValue("order-of-joined", "the order of random numbers is requested, and one is a function of others")
    if len(parts) > MOST_ORDERED:
        raise NeedsValue(
            "too-many-joined",
            f"an order statistic of more than {MOST_ORDERED} random numbers is requested",
        )
    if any(not isinstance(part, Continuous) and isnan(part) for part in parts):
        raise NeedsValue("equal-numbers", "the order of random numbers and NaN is requested")
    return parts[0] if len(parts) == 1 else Extreme(parts, largest, rank)


def largest_of(operands: tuple[Any, ...], *, largest: bool = True) -> Continuous | Extreme | float:
    """Return the largest (or smallest) of ``operands``, numbers and symbolic numbers.

    Raises ``NeedsValue`` for two kinds of operands: a combination of several numbers, such as a sum, and an order
    statistic other than a maximum (or minimum).
    """
    parts: list[Continuous | float] = []
    for operand in operands:
        if isinstance(operand, Extreme) and (operand.largest != largest or operand.rank):
            raise NeedsValue(
                "order-of-joined",
                "the maximum of several random numbers is requested, and one is a minimum or another rank",
            )
        if isinstance(operand, tuple) and not isinstance(operand, Continuous | Extreme):
            raise NeedsValue(
                "order-of-joined", "the maximum of several random numbers is requested, and one is a function of others"
            )
        parts += operand.parts if isinstance(operand, Extreme) else (operand,)
    different = tuple(dict.fromkeys(parts))
    return different[0] if len(different) == 1 else Extreme(different, largest)


_EXPONENTIAL = (LOG, times(-1.0))


def exponential(uniform: Uniform) -> Continuous:
    """Return the exponential number ``-log(uniform)``, of rate 1."""
    return Continuous(uniform, _EXPONENTIAL)


def whole_number(uniform: Uniform, low: int, number: int) -> Continuous:
    """Return a symbolic integer, uniform in ``[low, low + number)``."""
    return Continuous(uniform).then(times(float(number))).then(FLOOR).then(plus(float(low)))


# Several

MOST_PARTS = 32
"""Limit of random numbers combined in one expression."""
SNAPPED = 1e-12
"""An interval end within this distance of an integer is that integer; outward rounding had moved it."""


class Joined(NamedTuple):
    """Two symbolic numbers (``operands``) combined by the operation ``name``, such as ``add``.

    The monotone functions ``steps`` are applied to the result, which is then limited to ``[low, high]``.
    """

    name: str
    """``add``, ``multiply`` or ``maximum``."""
    operands: tuple[Any, ...]
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -inf
    high: float = inf

    def then(self, step: MonotoneStep) -> Joined:
        """Return the symbolic number that results if the monotone function ``step`` is applied to this one.

        Raises ``NeedsValue`` if a factor or an exponent in the resulting chain is 0 or not finite.
        """
        steps = pushed(self.steps, step)
        if any(not 0 < abs(each.number) < inf for each in steps if each.name in SCALES):
            raise NeedsValue(
                "out-of-range", f"a random number leaves the range of floats ({step.name} {step.number:g})"
            )
        ends = step.of(self.low), step.of(self.high)
        return Joined(self.name, self.operands, steps, *(ends if step.increasing else ends[::-1]))

    def at_least(self, bound: float) -> Joined:
        """Return the maximum of the number and ``bound``."""
        return self._replace(low=max(self.low, bound))

    def formula(self, place_of: Callable[[Known], int]) -> Formula:
        """Return the number as a formula that refers to each uniform by its index, to compute probabilities.

        ``place_of(known)`` is the index of the uniform with the constraints ``known``.
        """
        operands = tuple(_formula(each, place_of) for each in self.operands)
        return Formula(self.name, operands, self.steps, self.low, self.high)

    def uniforms(self) -> list[Uniform]:
        """Return the uniforms in this number, each once."""
        return list({id(uniform.known): uniform for uniform in _uniforms(self)}.values())

    def ends(self) -> tuple[float, float]:
        """Return lower and upper bounds of the values, given the interval in which each uniform is known to lie."""
        return self._ends([(uniform.known.low, uniform.known.high) for uniform in self.uniforms()])

    def _ends(self, box: Sequence[tuple[float, float]]) -> tuple[float, float]:
        places = {id(uniform.known): place for place, uniform in enumerate(self.uniforms())}
        formula = self.formula(lambda known: places[id(known)])
        low, high = enclosed(formula, *np.array(box).T[..., None]).value
        return _snapped(float(low[0])), _snapped(float(high[0]))

    def below(self, bound: float, place: str = "", *, or_equal: bool = False) -> bool:
        """Return whether the number is below ``bound``; unless earlier comparisons determine this, the result is drawn.

        ``or_equal`` includes equality. The result is False if ``bound`` is NaN. ``place`` is the line that compares, by
        default the current one. Raises ``NeedsValue`` if the probability is not known with enough precision, or if a
        uniform in this number has been in a race (an argmax or argmin of random numbers).
        """
        uniforms = self.uniforms()
        low, high = self._ends([(0.0, 1.0)] * len(uniforms))
        if isnan(bound) or not low <= bound <= high or isinf(bound):
            return bound > high or bound == inf
        for uniform in uniforms:
            look(uniform.draw)
            if uniform.known.raced:
                raise NeedsValue(
                    "second-race", "random noise that has already decided a race is compared together with another"
                )
        or_equal = or_equal and not self._is_smooth()
        group = among([uniform.known for uniform in uniforms])
        chance = group.chance(self, bound, or_equal=or_equal)
        if chance.refusal:
            raise NeedsValue("compared-in-two-ways", chance.refusal)
        drawn = 0 < chance.middle < 1
        self._refuse_second_decision(uniforms, group, place, drawn=drawn)
        rounding.known_within(chance.within)
        if not drawn:
            return chance.middle == 1
        result = uniforms[0].coin(
            chance.middle,
            lambda _: int(mode().coupled.holds(uniforms, self, bound, or_equal=or_equal)),
            Constraint(tuple(uniform.known for uniform in uniforms), within=chance.within),
        )
        group.learn(JointAnswer(self, bound, or_equal, result))
        return result

    def _refuse_second_decision(self, uniforms: list[Uniform], group: Together, place: str, *, drawn: bool) -> None:
        before = [
            answer.true for answer in group.answers if isinstance(answer.of, Joined) and answer.of[:2] == self[:2]
        ]
        refusal = audit.asked_together(
            tuple(uniform.draw.name for uniform in uniforms),
            before,
            others=len(before) < len(group.answers) or any(uniform.known.questions for uniform in uniforms),
            drawn=drawn,
            place=place,
        )
        if refusal:
            raise NeedsValue("compared-in-two-ways", refusal)

    def may_be(self, number: float) -> bool:
        """Return whether the value ``number`` may have a positive probability."""
        low, high = self.ends()
        return low <= number <= high and not self._is_smooth()

    def _is_smooth(self) -> bool:
        return _smooth(self) and len(list(_uniforms(self))) == len(self.uniforms())

    def equals(self, _number: float, _place: str = "") -> bool:
        """Return False: this number has a continuous law, so it equals no given number.

        Raises ``NeedsValue`` if the law may not be continuous.
        """
        if not self._is_smooth():
            raise NeedsValue(
                "equal-numbers", "random numbers that are clamped or have steps are joined, and compared for equality"
            )
        return False

    def interval_of(self, bounds: Sequence[float], place: str = "", *, or_equal: bool = True) -> int:
        """Return how many of the non-decreasing ``bounds`` are at most the value, by one comparison after the other.

        With ``or_equal`` False, bounds equal to the value are not counted. ``place`` is the line that compares.
        """
        result = (number for number, bound in enumerate(bounds) if self.below(bound, place, or_equal=not or_equal))
        return next(result, len(bounds))


Symbolic: TypeAlias = Continuous | Extreme | Joined
"""A symbolic random number: its value is not forced."""
SYMBOLIC = (Continuous, Extreme, Joined)
"""The same types as a tuple, for a faster ``isinstance``."""
_KINDS = frozenset(SYMBOLIC)


def any_symbolic(values: Iterable[Any]) -> bool:
    """Return whether ``values`` contain a symbolic number."""
    return not _KINDS.isdisjoint(map(type, values))


def joined(name: str, left: Symbolic, right: Symbolic) -> Joined:
    """Return ``left`` and ``right``, symbolic numbers, combined by ``name``: ``add``, ``multiply`` or ``maximum``.

    Raises ``NeedsValue`` if the result has more than ``MOST_PARTS`` uniforms.
    """
    result = Joined(name, (left, right))
    if len(list(islice(_uniforms(result), MOST_PARTS + 1))) > MOST_PARTS:
        raise NeedsValue("too-many-joined", f"more than {MOST_PARTS} random numbers are added up or multiplied")
    return result


def _snapped(end: float) -> float:
    return float(round(end)) if isfinite(end) and abs(end - round(end)) < SNAPPED else end


def _formula(of: Any, place_of: Callable[[Known], int]) -> Formula:
    if isinstance(of, Joined):
        return of.formula(place_of)
    if isinstance(of, Continuous):
        return Formula("uniform", (place_of(of.uniform.known),), of.steps, of.low, of.high)
    if not isinstance(of, Extreme):
        return Formula("number", (float(of),))
    if of.rank:
        raise NeedsValue(
            "order-of-joined", "one at a place of the order of random numbers is joined with another random number"
        )
    sign = () if of.largest else (times(-1.0),)
    parts = [_turned(_formula(part, place_of)) if sign else _formula(part, place_of) for part in of.parts]
    result: Formula = reduce(lambda one, other: Formula(MAXIMUM, (one, other)), parts)
    return result._replace(steps=sign)


def _turned(formula: Formula) -> Formula:
    """Return the negative of ``formula``."""
    return Formula(ADD, (formula, Formula("number", (0.0,))), (times(-1.0),))


def _uniforms(of: Any) -> Iterator[Uniform]:
    if isinstance(of, Continuous):
        yield of.uniform
    for part in of.operands if isinstance(of, Joined) else of.parts if isinstance(of, Extreme) else ():
        yield from _uniforms(part)


def _smooth(of: Any) -> bool:
    """Return whether it is certain that ``of``, a symbolic number, has a continuous law.

    Then no single value has a positive probability. Each part of the number is examined alone. If two parts contain the
    same uniform, the result may be True although they cancel.
    """
    if isinstance(of, Continuous):
        return not of.clamped and not of.in_steps
    if isinstance(of, Extreme):
        return all(isinstance(part, Continuous) and _smooth(part) for part in of.parts)
    stepped = any(step.name in STEPPED for step in of.steps)
    within = Joined(of.name, of.operands, of.steps).ends()
    return not stepped and of.low <= within[0] and of.high >= within[1] and all(map(_smooth, of.operands))


# Whole numbers

MOST_OUTCOMES = 10_000
FEWEST = 1_000_000
"""With fewer outcomes than this an integer may be a token, an index or a coin, so no arbitrary outcome is substituted.
"""


EVEN = {"plus", "times", FLOOR.name}
"""Steps that keep equally likely outcomes equally likely."""


def is_whole(value: Continuous) -> bool:
    """Return whether all possible values of ``value`` are integers."""
    steps = value.steps
    if steps and steps[-1].name == "plus" and steps[-1].number.is_integer():
        steps = steps[:-1]
    return bool(steps) and steps[-1].name == FLOOR.name


def few(value: Any) -> bool:
    """Return whether ``value`` is an integer with few, equally likely values, so that drawing it costs few runs."""
    whole = isinstance(value, Continuous) and is_whole(value) and not value.clamped
    return whole and {step.name for step in value.steps} <= EVEN and _outcomes(value) <= MOST_OUTCOMES


def drawn(value: Any) -> Any:
    """Return an integer with few values as a plain number, drawn now; any other ``value`` unchanged.

    Called before numbers are combined: combinations of continuous numbers have (nearly) closed forms, but integers have
    to be enumerated.
    """
    return float(force_integer(value)) if few(value) else value


def force_integer(value: Continuous) -> int:
    """Return a plain integer for a symbolic one that the program reads; later comparisons agree with it.

    With at most ``MOST_OUTCOMES`` values, the integer is drawn. With at least ``FEWEST`` values, as for a seed, it is
    computed from the generator state and differs in every run. Raises ``NeedsValue`` for a number of values between
    these limits, for values that are not equally likely integers, and for a number that was compared together with
    others.
    """
    known, origin = value.uniform.known, value.uniform.draw.origin
    number = _outcomes(value)
    if not is_whole(value) or value.clamped or not {step.name for step in value.steps} <= EVEN:
        raise refusal(
            "value-needed", "the value of a random number is needed, and not all of its values are equally likely"
        )
    if 2 <= number <= MOST_OUTCOMES:
        first = value.ends()[0]
        return int(first) + value.interval_of([first + place for place in range(1, round(number))])
    if not (FEWEST <= number < math.inf or number < 2):
        raise refusal(
            "too-many-outcomes",
            f"a number of {number:.0f} outcomes is needed, more than can be enumerated and fewer than seeds have",
        )
    if known.together:
        raise refusal("value-needed", "the value of a random number is needed that was compared together with others")
    look(value.uniform.draw)
    state = os.urandom(8) if origin is None else repr(origin.state).encode()
    coupled = mode().coupled
    place = known.low + (known.high - known.low) * (zlib.crc32(state) + 0.5) / 2**32
    place = place if coupled is None else coupled.value(value.uniform)
    result = place
    for step in value.steps:
        result = step.of(result)
    ends = carried_back(value.steps, result), carried_back(value.steps, result, or_equal=True)
    known.low, known.high = max(known.low, min(ends)), min(known.high, max(ends))
    if not known.low < known.high:
        known.low, known.high = place, math.nextafter(place, 2.0)
    give(f"a number of {number:.0f} outcomes at {caller()}, given as it is")
    return int(result) if coupled is None else int(coupled.whole(value, result))


def _outcomes(value: Continuous) -> float:
    """Return approximately how many values a symbolic integer may still have, given earlier comparisons.

    The result is below 2 if only one value is possible.
    """
    low, high = value.uniform.known.low, value.uniform.known.high
    for step in value.steps:
        low, high = (step.of(low), step.of(high)) if step.increasing else (step.of(high), step.of(low))
    return high - low
