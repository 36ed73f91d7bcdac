"""An interpreter that follows a path and collects the constraints on its random numbers, to feed a plain run.

``Gathered`` is an alternative to ``Coupled``: the draws that it receives, such as those of an enumeration, choose the
branches. Afterwards ``numbers`` draws a value inside the interval of every uniform of the path. Questions to several
numbers (races, sums) are evaluated with these values, which are drawn again until all answers are those of the path.
Values within rounding of the point where an answer changes are drawn again too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.recorded_numbers import Item, NotRecorded
from specverify.intercept.run import mode_with, nobody_answers
from specverify.intercept.symbolic.continuous import Continuous, Extreme, Joined
from specverify.intercept.symbolic.together import VALUE_OF
from specverify.laws.rounding import FLOAT32
from specverify.reference import Draws, Pmf, Site

NEAR = 16 * FLOAT32
"""A number stays as far as this from where an answer changes."""
MARGIN, ENDS = 0.02, (0.02, 0.98)
"""One number of three is near each end of its interval, where another threshold shows soonest."""
TRIES = 400
"""Attempts to draw numbers that several questions hold for together."""
GOLDEN = 0.6180339887498949


class _Slot:
    """The outcome of one draw; None until it is read."""

    __slots__ = ("number", "outcome")

    def __init__(self) -> None:
        self.outcome: int | None = None
        self.number = math.nan
        """A uniform number that gives the outcome by a look-up in the cumulated weights."""


class _PathQuestion(NamedTuple):
    """A question to several numbers, and its answer on the path."""

    known: tuple[Any, ...]
    holds: Callable[[_Values], bool]


class _Near(Exception):  # noqa: N818 - reads as the sentence it is
    """The answer to a question changes within rounding of these numbers."""


class Gathered:
    """Answer the draws of one examined run by ``named``, and collect the numbers of its path."""

    def __init__(self, named: Draws) -> None:
        """Start without draws."""
        self._named = named
        self._slots: list[Any] = []
        self._questions: list[_PathQuestion] = []
        self._asked: tuple[Any, ...] = ()
        self._wholes: dict[int, int] = {}
        """By what is known of a number, the integer that it was given as."""
        self.by_name: list[int] = []
        """The outcomes of the draws that the program makes by name."""

    # What interception tells

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of a draw that the program makes through ``draws``."""
        self.by_name.append(self._named.categorical(pmf, site))
        return self.by_name[-1]

    def key(self) -> Any:
        """Raise ``NotRecorded``, because the numbers of JAX are a function of keys."""
        raise NotRecorded("the numbers of JAX are a function of keys")

    def push(self, _items: Sequence[Item]) -> None:
        """Raise ``NotRecorded``, as ``key`` does."""
        self.key()

    def take(self, uniform: Any) -> None:
        """Register a new uniform number."""
        self._slots.append(uniform)

    def take_block(self, _block: Any) -> None:
        """Raise ``NotRecorded``, because noise vectors of a real vocabulary are not fed."""
        raise NotRecorded("noise vectors are not fed")

    def open_end(self, _element: Any, _law: Any) -> None:
        """Do nothing; ``Coupled.open_end`` compares the law of an outcome that nothing has read."""

    def take_outcome(self, _draw: Any) -> _Slot:
        """Register a categorical draw."""
        slot = _Slot()
        self._slots.append(slot)
        return slot

    def outcome(self, pmf: Any, slot: _Slot, name: str) -> int:
        """Return the outcome of a draw on this path."""
        if slot.outcome is None:
            with nobody_answers():
                slot.outcome = int(self._named.categorical(pmf, (name, "outcome")))
            slot.number = _number_of(pmf, slot.outcome)
        return slot.outcome

    def agree(self, outcome: int, pmf: Any, slot: _Slot, _name: str) -> None:
        """Store the outcome of a draw that equals an earlier draw."""
        slot.outcome, slot.number = outcome, _number_of(pmf, outcome)

    def cell(self, uniform: Any, pmf: Any, lies: Callable[[float], int]) -> int:
        """Return the index of the interval that contains ``uniform`` on this path, among those of a comparison."""
        answer, known = self._ask(pmf, uniform.draw.name), uniform.known
        self._asked = (known,)
        lies(0.5)  # of several numbers it calls ``holds``, which tells them
        self._questions.append(_PathQuestion(self._asked, lambda values: lies(values[known]) == answer))
        return answer

    def holds(self, uniforms: Sequence[Any], _of: Any, _bound: float, *, or_equal: bool) -> int:
        """Store the numbers of a question to several of them; ``cell`` returns the answer."""
        self._asked = tuple(uniform.known for uniform in uniforms)
        return int(or_equal)

    def first(self, pmf: Any, runners: Sequence[Any]) -> int:
        """Return the index of the clock that rings first on this path."""
        answer = self._ask(pmf, str(runners[0].known.site[:2]))
        clocks = [(runner.known, runner.flipped, runner.rate) for runner in runners]
        known = tuple(clock for clock, _, _ in clocks)
        self._questions.append(
            _PathQuestion(known, lambda values: _least([values.time(*clock) for clock in clocks]) == answer)
        )
        return answer

    def largest(self, pmf: Any, scores: Sequence[Any], *, first: bool = True) -> int:
        """Return the index of the largest (or smallest) of ``scores`` on this path."""
        answer, sign = self._ask(pmf, "a race"), -1.0 if first else 1.0
        known = tuple(uniform.known for score in scores for uniform in _uniforms(score))
        self._questions.append(
            _PathQuestion(known, lambda values: _least([sign * values.evaluate(score) for score in scores]) == answer)
        )
        return answer

    def learn(self, _uniforms: Iterable[Any]) -> None:
        """Do nothing; ``Coupled.learn`` stores values here."""

    def value(self, uniform: Any) -> float:
        """Return a placeholder, different for each number, for one of very many outcomes."""
        known, share = uniform.known, (GOLDEN * (1 + len(self._wholes))) % 1.0
        return float(known.low + (known.high - known.low) * share)

    def whole(self, of: Any, otherwise: float) -> int:
        """Return the integer assigned to a number with very many outcomes."""
        added = int(of.steps[-1].number) if of.steps[-1].name == "plus" else 0
        self._wholes[id(of.uniform.known)] = int(otherwise) - added
        return int(otherwise)

    def _ask(self, pmf: Any, name: str) -> int:
        with nobody_answers():
            return int(self._named.categorical(pmf, (name, "question")))

    # What it gathered

    def numbers(self, rng: np.random.Generator) -> list[Item] | None:
        """Return the numbers and outcomes of the path, in the order in which they are drawn.

        Returns None if there is no number away from rounding in one of the intervals, or if ``TRIES`` attempts do not
        meet the questions to several numbers.
        """
        uniforms = [slot for slot in self._slots if not isinstance(slot, _Slot)]
        known = {id(uniform.known): uniform.known for uniform in uniforms}
        values = _Values()
        for one in self._groups(known):
            members = [known[key] for key in one.known]
            if not any(values.draw(members, rng, self._wholes) and one.met(values) for _ in range(one.tries)):
                return None
        return [self._item(slot, values) for slot in self._slots]

    def _item(self, slot: Any, values: _Values) -> Item:
        if isinstance(slot, _Slot):
            return Item(slot.number, slot.number, slot.outcome)
        whole = self._wholes.get(id(slot.known))
        return Item(values[slot.known], values[slot.known], whole)

    def _groups(self, known: dict[int, Any]) -> Iterator[_NumbersAskedTogether]:
        """Yield the groups of numbers that occur in common questions, with these questions."""
        group_of = {key: {key} for key in known}
        for question in self._questions:
            joined = set().union(*(group_of.setdefault(id(each), {id(each)}) for each in question.known))
            known.update({id(each): each for each in question.known})
            group_of.update(dict.fromkeys(joined, joined))
        for group in {id(group): group for group in group_of.values()}.values():
            asked = [question for question in self._questions if id(question.known[0]) in group]
            single = len(group) == 1 and next(iter(group)) in self._wholes
            yield _NumbersAskedTogether(sorted(group), [] if single else asked)


class _NumbersAskedTogether(NamedTuple):
    known: list[int]
    questions: list[_PathQuestion]

    @property
    def tries(self) -> int:
        return TRIES if self.questions else 1

    def met(self, values: _Values) -> bool:
        """Return whether ``values`` give every answer of the path."""
        try:
            with mode_with(coupled=values):
                return all(question.holds(values) for question in self.questions)
        except _Near:
            return False


class _Values:
    """Values of numbers inside their known intervals; it answers questions in place of ``Gathered``."""

    def __init__(self) -> None:
        self._of: dict[int, float] = {}

    def __getitem__(self, known: Any) -> float:
        return self._of[id(known)]

    def draw(self, known: Iterable[Any], rng: np.random.Generator, wholes: dict[int, int]) -> bool:
        """Draw numbers inside their intervals; return whether all intervals are wider than rounding."""
        for one in known:
            width = one.high - one.low
            if id(one) in wholes:
                self._of[id(one)] = one.low
                continue
            margin = max(width * MARGIN / 2, NEAR)
            if not width > 2 * margin:
                return False
            place = rng.integers(3) if width < 1 else 2
            share = ENDS[place] if place < 2 else rng.random()
            self._of[id(one)] = min(max(one.low + width * share, one.low + margin), one.high - margin)
        return True

    def holds(self, _uniforms: Sequence[Any], of: Any, bound: float, *, or_equal: bool) -> int:
        """Return 0 if ``of`` is below ``bound``, else 1. Raises ``_Near`` if it is within rounding of the bound."""
        value = self.evaluate(of)
        if abs(value - bound) <= NEAR * max(1.0, abs(bound)):
            raise _Near
        return int(not (value <= bound if or_equal else value < bound))

    def time(self, known: Any, flipped: bool, rate: float) -> float:
        """Return the ring time of a clock with ``rate``."""
        u = 1 - self[known] if flipped else self[known]
        return -math.log(u) / rate

    def evaluate(self, of: Any) -> float:
        """Return the value of an expression of random numbers."""
        if isinstance(of, Extreme):
            return float(sorted(map(self.evaluate, of.parts), reverse=of.largest)[of.rank])
        result: float
        if isinstance(of, Continuous):
            result = self[of.uniform.known]
        elif isinstance(of, Joined):
            one, other = map(self.evaluate, of.operands)
            result = float(VALUE_OF[of.name](one, other))
        else:
            return float(of)
        for step in of.steps:
            result = step.of(result)
        return float(min(max(result, of.low), of.high))


def _number_of(pmf: Any, outcome: int) -> float:
    """Return the midpoint of the interval of ``outcome`` in the cumulative sums of ``pmf``."""
    masses = np.asarray(pmf, dtype=np.float64)
    return float(masses[:outcome].sum() + masses[outcome] / 2)


def _least(values: Sequence[float]) -> int:
    """Return the index of the smallest value. Raises ``_Near`` if another one equals it within rounding."""
    result = min(range(len(values)), key=values.__getitem__)
    others = [value for place, value in enumerate(values) if place != result]
    if others and min(others) - values[result] <= NEAR * max(1e-30, abs(values[result])):
        raise _Near
    return result


def _uniforms(of: Any) -> Iterator[Any]:
    """Yield the uniform numbers in an expression."""
    if isinstance(of, Continuous):
        yield of.uniform
    for part in (*getattr(of, "parts", ()), *getattr(of, "operands", ())):
        yield from _uniforms(part)
