"""Random numbers that are made of several others: sums, products and the larger one of two, with steps behind them.

A ``Joined`` has no chain that leads back to one uniform number, so a comparison of it is asked of all of them together
(``together``). What it is made of may be in it twice: ``u * (1 - u)`` is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.intercept import audit
from specverify.intercept.run import mode
from specverify.intercept.symbolic.continuous import Continuous, Extreme
from specverify.intercept.symbolic.enclosures import Formula, enclosed
from specverify.intercept.symbolic.steps import SCALES, STEPPED, MonotoneStep, pushed, times
from specverify.intercept.symbolic.together import Answer, Together, among
from specverify.intercept.symbolic.uniform import Known, NeedsValue, Uniform, look
from specverify.intercept.unpatched import inf, isfinite, isinf, isnan
from specverify.laws import rounding

MOST_PARTS = 32
"""Random numbers that one is made of."""
SNAPPED = 1e-12
"""An end of values as near to a whole number as this is that number, but for rounding outwards."""


class Joined(NamedTuple):
    """``steps`` of what an operation makes of two numbers, random ones both, and then clamped."""

    name: str
    """``add``, ``multiply`` or ``maximum``."""
    operands: tuple[Any, ...]
    steps: tuple[MonotoneStep, ...] = ()
    low: float = -inf
    high: float = inf

    def then(self, step: MonotoneStep) -> Joined:
        """Return the value with one more step. Raises ``NeedsValue`` where that leaves the range of floats."""
        steps = pushed(self.steps, step)
        if any(not 0 < abs(each.number) < inf for each in steps if each.name in SCALES):
            raise NeedsValue(
                "out-of-range", f"a random number leaves the range of floats ({step.name} {step.number:g})"
            )
        ends = step.of(self.low), step.of(self.high)
        return Joined(self.name, self.operands, steps, *(ends if step.increasing else ends[::-1]))

    def at_least(self, bound: float) -> Joined:
        """Return the larger one of the value and a number."""
        return self._replace(low=max(self.low, bound))

    def formula(self, place_of: Callable[[Known], int]) -> Formula:
        """Return it in terms of the places of its uniform numbers."""
        operands = tuple(_formula(each, place_of) for each in self.operands)
        return Formula(self.name, operands, self.steps, self.low, self.high)

    def uniforms(self) -> list[Uniform]:
        """Return what it is made of, each number once."""
        return list({id(uniform.known): uniform for uniform in _uniforms(self)}.values())

    def ends(self) -> tuple[float, float]:
        """Return a number that it is not below, and one that it is not above, given what is known of each uniform."""
        return self._ends([(uniform.known.low, uniform.known.high) for uniform in self.uniforms()])

    def _ends(self, box: Sequence[tuple[float, float]]) -> tuple[float, float]:
        places = {id(uniform.known): place for place, uniform in enumerate(self.uniforms())}
        formula = self.formula(lambda known: places[id(known)])
        low, high = enclosed(formula, *np.array(box).T[..., None]).value
        return _snapped(float(low[0])), _snapped(float(high[0]))

    def below(self, bound: float, place: str = "", *, or_equal: bool = False) -> bool:
        """Return whether it is below ``bound``, given all earlier answers; never below NaN.

        ``place`` is the line that compares, if it is not the one that is running. Raises ``NeedsValue`` where that is
        not known well enough, and where its random numbers have raced.
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
            chance.middle, lambda _: int(mode().coupled.holds(uniforms, self, bound, or_equal=or_equal))
        )
        group.learn(Answer(self, bound, or_equal, result))
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
            where=place,
        )
        if refusal:
            raise NeedsValue("compared-in-two-ways", refusal)

    def _is_smooth(self) -> bool:
        return _smooth(self) and len(list(_uniforms(self))) == len(self.uniforms())

    def equals(self, _number: float, _place: str = "") -> bool:
        """Return whether it is a number: never, unless some value may have a probability, which is refused."""
        if not self._is_smooth():
            raise NeedsValue(
                "equal-numbers", "random numbers that are clamped or have steps are joined, and compared for equality"
            )
        return False

    def interval_of(self, bounds: Sequence[float], place: str = "", *, or_equal: bool = True) -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the value: one is asked after the other."""
        result = (number for number, bound in enumerate(bounds) if self.below(bound, place, or_equal=not or_equal))
        return next(result, len(bounds))


Symbolic: TypeAlias = Continuous | Extreme | Joined
"""A random number that nobody has valued."""
SYMBOLIC = (Continuous, Extreme, Joined)
"""The same for those who ask whether a value is one, which is quicker of a tuple."""


def joined(name: str, left: Symbolic, right: Symbolic) -> Joined:
    """Return what ``add``, ``multiply`` or ``maximum`` makes of two; raises ``NeedsValue`` for too many parts."""
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
    result: Formula = reduce(lambda one, other: Formula("maximum", (one, other)), parts)
    return result._replace(steps=sign)


def _turned(formula: Formula) -> Formula:
    """Return minus a quantity, as a sum of which it is the half of."""
    return Formula("add", (formula, Formula("number", (0.0,))), (times(-1.0),))


def _uniforms(of: Any) -> Iterator[Uniform]:
    if isinstance(of, Continuous):
        yield of.uniform
    for part in of.operands if isinstance(of, Joined) else of.parts if isinstance(of, Extreme) else ():
        yield from _uniforms(part)


def _smooth(of: Any) -> bool:
    """Return whether no value has a probability, as far as its parts tell."""
    if isinstance(of, Continuous):
        return not of.clamped and not of.in_steps
    if isinstance(of, Extreme):
        return all(isinstance(part, Continuous) and _smooth(part) for part in of.parts)
    stepped = any(step.name in STEPPED for step in of.steps)
    within = Joined(of.name, of.operands, of.steps).ends()
    return not stepped and of.low <= within[0] and of.high >= within[1] and all(map(_smooth, of.operands))
