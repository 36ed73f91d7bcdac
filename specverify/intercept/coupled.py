"""An interpreter that examines the numbers of a plain run: every comparison gets the answer of the recorded run.

A plain run is a run in which the libraries draw their own numbers, which are recorded. ``Coupled`` then takes the place
of ``Enumerated``: each new symbolic number gets the next recorded value, and each draw takes the branch that contains
it. So the examined run must return the result of the plain run.

A comparison of one uniform number is answered twice: by its value, and by the position of its remainder among the
weights of the branches, because the remainder is uniform again after every answer. If the two differ, an interval was
lost or a weight is wrong. Races, and comparisons of several numbers together, are answered by their values alone.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, combinations
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.recorded_numbers import Item, NotRecorded, items_of
from specverify.intercept.recorder import Record, Recorder
from specverify.intercept.run import RUNS, nobody_answers
from specverify.intercept.symbolic.continuous import Continuous, Extreme, Joined
from specverify.intercept.symbolic.steps import FLOOR
from specverify.intercept.symbolic.together import VALUE_OF
from specverify.laws.rounding import FLOAT32
from specverify.reference import Draws, Pmf, Site

NEAR = 8 * FLOAT32
"""A number as near as this to where an answer changes is a tie of rounding: float32 may decide it either way."""


MOST_COMPARED = 64
"""Numbers of one run that are compared for equality: of more, some float32 are equal by chance."""


class Parted(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if the examined run differs from the plain run: the difference, and the first call at which it appears."""


class _Rest:
    """The position of a uniform number inside the interval in which it lies, as a fraction of the interval's width."""

    __slots__ = ("at", "width")

    def __init__(self, at: float) -> None:
        self.at, self.width = at, 1.0


class _Number(NamedTuple):
    """The value of a uniform number in the plain run."""

    of: Any
    """The number, or what is known of it: kept, so that no other one gets its identity."""
    value: float
    item: Item
    block: Any
    """The block in which it was drawn: reuse between blocks is for the audit of draws to decide."""


class Coupled:
    """An interpreter that answers the draws of an examined run from the record of a plain run.

    ``named`` answers the draws that the program makes through ``draws``.
    """

    def __init__(self, recorder: Recorder, named: Draws, rng: np.random.Generator) -> None:
        """Read the recorded numbers.

        ``rng`` chooses a value for a number of which the record gives only an interval.
        """
        self._named, self._rng = named, rng
        self._records: deque[Record] = deque(recorder.records)
        self._keys: deque[Any] = deque(recorder.keys)
        self.by_keys = False
        """Whether JAX drew: its numbers are a function of keys, which a program may keep from run to run."""
        self._items: deque[Item] = deque()
        self._of: Record | None = None
        self._numbers: dict[int, _Number] = {}
        """By the identity of a uniform, and of what is known of it."""
        self._rests: dict[int, _Rest] = {}
        self._told: dict[Any, list[tuple[float, bool]]] = {}
        """What was answered about quantities of several numbers."""
        self._order: set[tuple[int, int]] = set()
        """Numbers of which the first is known to ring before the second."""
        self.ties: list[str] = []
        """Questions that rounding may answer either way."""
        self.parted: list[str] = []
        """What was different, first things first."""

    # What interception tells

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of a draw that the program makes through ``draws``."""
        return self._named.categorical(pmf, site)

    def key(self) -> Any:
        """Return the JAX key that the plain run received. Raises ``Parted`` if it received no more keys."""
        if not self._keys:
            raise self._part("a key is asked for that the plain run did not ask for")
        return self._keys.popleft()

    def push(self, items: Sequence[Item]) -> None:
        """Insert ``items`` before the recorded numbers that are left: the next draws take them."""
        self._items.extendleft(reversed(items))

    def take(self, uniform: Any) -> None:
        """Assign the next recorded value to ``uniform``, a new symbolic number.

        Raises ``Parted`` if an outcome was recorded.
        """
        item = self._next(uniform.draw.name)
        if math.isnan(item.low):
            raise self._part(f"{uniform.draw.name} makes a number, and {self._of} drew an outcome")
        with nobody_answers():
            value = item.low if item.low == item.high else float(self._rng.uniform(item.low, item.high))
        self._numbers[id(uniform)] = _Number(uniform, value, item, RUNS.blocks[-1] if RUNS.blocks else None)

    def take_outcome(self, draw: Any) -> Item:
        """Return the next recorded item, for a categorical draw."""
        return self._next(draw.name)

    def outcome(self, pmf: Any, item: Item, name: str) -> int:
        """Return the outcome recorded in ``item`` for a draw from ``pmf`` by the call ``name``.

        Raises ``Parted`` if the recorded weights are not proportional to ``pmf`` or the outcome has probability 0.
        """
        masses = np.asarray(pmf, dtype=np.float64)
        if item.outcome is None:
            return int(np.searchsorted(np.cumsum(masses), item.low, "right"))
        if not 0 <= item.outcome < len(masses) or not masses[item.outcome] > 0:
            raise self._part(f"{name} asks for one of {masses.tolist()}, and {self._of} drew {item.outcome}")
        if item.weights is not None:
            weights = np.asarray(item.weights, dtype=np.float64)
            if len(weights) != len(masses) or np.abs(weights / weights.sum() - masses).max() > NEAR:
                raise self._part(f"{name} asks with weights {masses.tolist()}, drawn from {weights.tolist()}")
        return item.outcome

    def agree(self, outcome: int, pmf: Any, item: Item, name: str) -> None:
        """Raise ``Parted`` unless ``item`` records ``outcome``.

        The examined run took ``outcome`` from an earlier draw that it treats as equal to this one.
        """
        if outcome != self.outcome(pmf, item, name):
            raise self._part(f"{name} is examined as a draw made before, which gave another outcome")

    def cell(self, uniform: Any, pmf: Any, lies: Callable[[float], int]) -> int:
        """Return the index of the interval, among those of a comparison, that contains the value of ``uniform``.

        ``pmf`` has the probability of each interval, and ``lies(value)`` returns the index of the interval of a value.
        """
        value, known = self.value(uniform), uniform.known
        result = lies(value)
        masses = [float(mass) for mass in pmf]
        rest = self._rests.get(id(known))
        if rest is None:
            rest = self._rests[id(known)] = _Rest(value)
        if known.together or known.raced or known.place is not None:
            rest.width = 0.0
            return self._possible(result, masses, uniform.draw.name)
        return self._by_rest(rest, result, masses, uniform.draw.name)

    def holds(self, uniforms: Sequence[Any], of: Any, bound: float, *, or_equal: bool) -> int:
        """Return 0 if ``of``, a quantity of several ``uniforms``, is below ``bound``, else 1.

        With ``or_equal``, equality gives 0 too.
        """
        for uniform in uniforms:
            self._rests[id(uniform.known)] = rest = _Rest(0.0)
            rest.width = 0.0
        value = self.evaluate(of)
        for bound_before, below in self._told.setdefault(of, []):
            if (below and bound > bound_before) or (not below and bound < bound_before) or bound == bound_before:
                self._differ(
                    f"{uniforms[0].draw.name}: a question to several numbers is asked that was answered before"
                )
        self._told[of].append((bound, value < bound))
        if abs(value - bound) <= NEAR * max(1.0, abs(bound)):
            self.ties.append(f"{uniforms[0].draw.name}: {value} and {bound}")
        return int(not (value <= bound if or_equal else value < bound))

    def first(self, pmf: Any, runners: Sequence[Any]) -> int:
        """Return the index of the clock in ``runners`` that rings first (exponential race), by the recorded values."""
        times = [self._time(runner) for runner in runners]
        name, known = str(runners[0].known.site[:2]), [id(runner.known) for runner in runners]
        if any(all((one, other) in self._order for other in known if other != one) for one in known):
            self._differ(f"{name}: an order is asked for that was answered before")
        result = self._least(times, [float(mass) for mass in pmf], name)
        behind = {later for other in known for later in (other, *(b for a, b in self._order if a == other))}
        self._order |= {(known[result], later) for later in behind - {known[result]}}
        return result

    def largest(self, pmf: Any, scores: Sequence[Any], *, first: bool = True) -> int:
        """Return the index of the largest of ``scores`` if ``first``, else of the smallest, by the recorded values."""
        values = [self.evaluate(score) for score in scores]
        signed = [-value for value in values] if first else values
        return self._least(signed, [float(mass) for mass in pmf], "a race")

    def learn(self, uniforms: Iterable[Any]) -> None:
        """Raise ``Parted`` if one of ``uniforms`` counts as an earlier number of another recorded value."""
        for uniform in uniforms:
            self.value(uniform)

    def value(self, uniform: Any) -> float:
        """Return the recorded value of a uniform number.

        Raises ``Parted`` if the examined run treats it as equal to an earlier number whose recorded value differs.
        """
        mine, known = self._numbers[id(uniform)], uniform.known
        number = self._numbers.setdefault(id(known), mine._replace(of=known))
        if number.item.low != mine.item.low:
            raise self._part(f"{uniform.draw.name} is examined as a number drawn before, which had another value")
        return number.value

    def whole(self, of: Any, otherwise: float) -> int:
        """Return the integer that was recorded for the symbolic expression ``of``; ``otherwise`` if none was recorded.

        The float64 position in (0, 1) cannot represent one of very many integers exactly.
        """
        outcome, steps = self._numbers[id(of.uniform)].item.outcome, of.steps
        added = int(steps[2].number) if len(steps) == 3 and steps[2].name == "plus" else 0
        plainly = [step.name for step in steps] in (["times", FLOOR.name], ["times", FLOOR.name, "plus"])
        return int(otherwise) if outcome is None or not plainly else outcome + added

    def evaluate(self, of: Any) -> float:
        """Return the value of ``of``, an expression of symbolic numbers, at the recorded values."""
        if isinstance(of, Extreme):
            return float(sorted(map(self.evaluate, of.parts), reverse=of.largest)[of.rank])
        result: float
        if isinstance(of, Continuous):
            result = self.value(of.uniform)
        elif isinstance(of, Joined):
            one, other = map(self.evaluate, of.operands)
            result = float(VALUE_OF[of.name](one, other))
        else:
            return float(of)
        for step in of.steps:
            result = step.of(result)
        return float(min(max(result, of.low), of.high))

    def twins(self) -> frozenset[tuple[int, int]]:
        """Return index pairs of numbers that have equal recorded values but that the examined run treats as different.

        Only pairs in one intercepted block count. Returns the empty set if there are more than ``MOST_COMPARED``
        numbers.
        """
        numbers = [number for number in self._numbers.values() if hasattr(number.of, "known")]
        if len(numbers) > MOST_COMPARED:
            return frozenset()
        return frozenset(
            (place, later)
            for (place, one), (later, other) in combinations(enumerate(numbers), 2)
            if one.item.low == other.item.low == other.item.high
            and one.of.known is not other.of.known
            and one.block is other.block
        )

    def left(self) -> str:
        """Return a sentence on the first recorded call that the examined run did not make; "" if it made all."""
        drawing = (record for record in self._records if _draws(record))
        return next((f"{record} was not made again" for record in drawing), "")

    # What it finds

    def _next(self, name: str) -> Item:
        while not self._items:
            if not self._records:
                raise self._part(f"{name} draws, and the plain run drew nothing more")
            self._of = self._records.popleft()
            self._items.extend(items_of(self._of))
        return self._items.popleft()

    def _time(self, runner: Any) -> float:
        u = self._numbers[id(runner.known)].value
        u = 1 - u if runner.flipped else u
        return -math.log(u) / runner.rate if u > 0 else math.inf

    def _least(self, values: list[float], masses: list[float], name: str) -> int:
        result = min(range(len(values)), key=values.__getitem__)
        others = values[:result] + values[result + 1 :]
        if others and min(others) - values[result] <= NEAR * max(1e-30, abs(values[result])):
            self.ties.append(f"{name}: {values[result]} and {min(others)}")
        return self._possible(result, masses, name)

    def _possible(self, result: int, masses: list[float], name: str) -> int:
        """Return ``result`` if its probability in ``masses`` is positive.

        Else record a difference and return the likeliest outcome.
        """
        if masses[result] > 0:
            return result
        self._differ(f"{name}: an answer of probability 0 came")
        return max(range(len(masses)), key=masses.__getitem__)

    def _by_rest(self, rest: _Rest, result: int, masses: list[float], name: str) -> int:
        ends = [0.0, *accumulate(masses)]
        if rest.width > 0:
            off = max(ends[result] - rest.at, rest.at - ends[result + 1])
            if off > NEAR / rest.width:
                self._differ(f"{name}: the answer has another weight than the interval it means")
            elif min(abs(rest.at - end) for end in ends[1:-1]) <= NEAR / rest.width:
                self.ties.append(name)
        result = self._possible(result, masses, name)
        low, mass = ends[result], masses[result]
        rest.at = min(max((rest.at - low) / mass, 0.0), 1.0)
        rest.width *= mass
        return result

    def _differ(self, what: str) -> None:
        self.parted.append(what)

    def _part(self, what: str) -> Parted:
        self.parted.append(what)
        return Parted(what)


def _draws(record: Record) -> bool:
    """Return whether a recorded call drew a number; a call with an empty shape draws none."""
    try:
        return bool(items_of(record))
    except NotRecorded:
        return True


__all__ = ["Coupled", "NotRecorded", "Parted"]
