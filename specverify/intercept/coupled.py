"""An interpreter that repeats a plain run: every comparison of a random number has the recorded answer.

``Coupled`` is an alternative to ``Enumerated``. In its block each new symbolic number gets the next recorded one, and
each draw takes the branch that contains it. So the examined run must return the result of the plain run.

A comparison of one uniform number is answered twice: by its value, and by the position of its remainder among the
weights of the branches, because the remainder is uniform again after every answer. If the two differ, an interval was
lost or a weight is wrong. The order of clocks, and decisions by several numbers together, are answered by their values.
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
from specverify.intercept.symbolic.vectors import of as images
from specverify.laws.rounding import FLOAT32
from specverify.reference import Draws, Pmf, Site

NEAR = 8 * FLOAT32
"""A number as near as this to where an answer changes is a tie of rounding: float32 may decide it either way."""


MOST_COMPARED = 64
"""Numbers of one run that are compared for equality: of more, some float32 are equal by chance."""


class Parted(Exception):  # noqa: N818 - reads as the sentence it is
    """The examined run differs from the plain one: the difference, and the first call at which it shows."""


class _Rest:
    """The position of a uniform in its known interval, as a fraction of the interval."""

    __slots__ = ("at", "width")

    def __init__(self, at: float) -> None:
        self.at, self.width = at, 1.0


class _Number(NamedTuple):
    """The value of a uniform in the plain run, with its position after each answer."""

    of: Any
    """The number, or what is known of it: kept, so that no other one gets its identity."""
    value: float
    item: Item
    block: Any
    """The block in which it was drawn: reuse between blocks is for the audit of draws to decide."""


class Coupled:
    """Answer the draws of an examined run from the records of a plain run; ``named`` is as in ``Recorder``."""

    def __init__(self, recorder: Recorder, named: Draws, rng: np.random.Generator) -> None:
        """``rng`` chooses the value of a number of which only an interval is recorded."""
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
        self._blocks: dict[int, tuple[Any, Any]] = {}
        """By the identity of what is known of a noise vector: that, and its recorded values."""
        self._mass: float | None = None
        """The probability of the last outcome, or answer about several numbers."""
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
        """Return the key that the plain run received. Raises ``Parted`` if there are no more keys."""
        if not self._keys:
            raise self._part("a key is asked for that the plain run did not ask for")
        return self._keys.popleft()

    def push(self, items: Sequence[Item]) -> None:
        """Insert ``items`` as the next numbers; they come from another source than the records."""
        self._items.extendleft(reversed(items))

    def take(self, uniform: Any) -> None:
        """Assign the next recorded value to a new uniform number; one of a noise vector has its value there."""
        recorded = getattr(uniform.draw, "recorded", None)
        item = self._next(uniform.draw.name) if recorded is None else Item(value := recorded(self), value)
        if math.isnan(item.low):
            raise self._part(f"{uniform.draw.name} makes a number, and {self._of} drew an outcome")
        with nobody_answers():
            value = item.low if item.low == item.high else float(self._rng.uniform(item.low, item.high))
        self._numbers[id(uniform)] = _Number(uniform, value, item, RUNS.blocks[-1] if RUNS.blocks else None)

    def take_block(self, block: Any) -> None:
        """Assign the next recorded values to the numbers of a noise vector."""
        items = [self._next(block.draw.name) for _ in range(block.size)]
        values = np.array([item.low for item in items])
        if np.isnan(values).any():
            raise self._part(f"{block.draw.name} makes numbers, and {self._of} drew an outcome")
        before = self._blocks.setdefault(id(block.known), (block.known, values))[1]
        if not np.array_equal(before, values):
            raise self._part(f"{block.draw.name} is examined as a draw made before, which had other values")

    def in_block(self, block: Any, number: int) -> float:
        """Return the recorded value of one number of a noise vector."""
        return float(self._blocks[id(block.known)][1][number])

    def take_outcome(self, draw: Any) -> Item:
        """Return the recorded item of a categorical draw."""
        return self._next(draw.name)

    def outcome(self, pmf: Any, item: Item, name: str) -> int:
        """Return the recorded outcome; its recorded weights must equal the given ones."""
        masses = np.asarray(pmf, dtype=np.float64)
        if item.outcome is None:
            result = int(np.searchsorted(np.cumsum(masses), item.low, "right"))
            self._mass = float(masses[min(result, len(masses) - 1)])
            return result
        if not 0 <= item.outcome < len(masses) or not masses[item.outcome] > 0:
            raise self._part(f"{name} asks for one of {masses.tolist()}, and {self._of} drew {item.outcome}")
        if item.weights is not None:
            weights = np.asarray(item.weights, dtype=np.float64)
            if len(weights) != len(masses) or np.abs(weights / weights.sum() - masses).max() > NEAR:
                raise self._part(f"{name} asks with weights {masses.tolist()}, drawn from {weights.tolist()}")
        self._mass = float(masses[item.outcome])
        return item.outcome

    def agree(self, outcome: int, pmf: Any, item: Item, name: str) -> None:
        """Raise ``Parted`` if a draw that counts as a repetition was recorded with another outcome."""
        if outcome != self.outcome(pmf, item, name):
            raise self._part(f"{name} is examined as a draw made before, which gave another outcome")

    def open_end(self, element: Any, law: Sequence[tuple[Any, float]]) -> None:
        """Read an outcome that nothing has read, and compare ``law``, its values with their probabilities, with it."""
        self._mass = None
        value = element.value()
        masses = [mass for each, mass in law if each == value]
        alike = self._mass is None or len(masses) > 1 or (len(masses) == 1 and abs(masses[0] - self._mass) <= NEAR)
        if not masses or not alike:
            self._differ(f"the last token is {value}, with probability {self._mass}, and unread it has {masses}")

    def cell(self, uniform: Any, pmf: Any, lies: Callable[[float], int]) -> int:
        """Return the index of the interval, among those of a comparison, that contains the value of ``uniform``."""
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
        """Return 0 if the quantity ``of`` of several uniforms is below ``bound`` (or equal, if ``or_equal``).

        Else 1.
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
        """Return the index of the clock in ``runners`` with the smallest ring time."""
        times = [self._time(runner) for runner in runners]
        name, known = str(runners[0].known.site[:2]), [id(runner.known) for runner in runners]
        if any(all((one, other) in self._order for other in known if other != one) for one in known):
            self._differ(f"{name}: an order is asked for that was answered before")
        result = self._least(times, [float(mass) for mass in pmf], name)
        behind = {later for other in known for later in (other, *(b for a, b in self._order if a == other))}
        self._order |= {(known[result], later) for later in behind - {known[result]}}
        return result

    def largest(self, pmf: Any, scores: Sequence[Any], *, first: bool = True) -> int:
        """Return the index of the largest of ``scores``, or of the smallest."""
        values = [self.evaluate(score) for score in scores]
        signed = [-value for value in values] if first else values
        return self._least(signed, [float(mass) for mass in pmf], "a race")

    def largest_of_many(self, scores: Any) -> int:
        """Return the index of the largest element of a noise vector."""
        values = self._values(scores)
        result = int(values.argmax())
        others = np.delete(values, result)
        if others.size and values[result] - others.max() <= NEAR * max(1e-30, abs(values[result])):
            self.ties.append(f"a race: {values[result]} and {others.max()}")
        return result

    def best_of_many(self, scores: Any, rates: Any) -> float:
        """Return the position of the first time of a race of exponential clocks with ``rates`` in its law."""
        winner = self.largest_of_many(scores)
        block = next(each for each in scores.blocks if 0 <= scores.ids[winner] - each.known.first < each.size)
        u = self.in_block(block, int(scores.ids[winner] - block.known.first))
        return float(u ** (rates.sum() / rates[winner]))

    def looked_up(self, of: Any, bounds: Any, law: Any) -> int:
        """Return how many of ``bounds`` are at or below a number; ``law`` must give this answer its interval."""
        value, known, name = self.evaluate(of), of.uniform.known, of.uniform.draw.name
        result = int(np.searchsorted(bounds, value, "right"))
        near = np.abs(bounds[max(result - 1, 0) : result + 1] - value)
        if (near <= NEAR * max(1.0, abs(value))).any():
            self.ties.append(f"{name}: {value} among bounds")
        position = (self.value(of.uniform) - known.low) / (known.high - known.low)
        before = float(law[:result].sum() if of.increasing else law[result + 1 :].sum())
        if not before - NEAR <= position <= before + float(law[result]) + NEAR:
            self._differ(f"{name}: the answer has another weight than the interval it means")
        return result

    def among(self, masses: Any, result: int, name: str) -> int:
        """Return the outcome ``result`` of a draw among very many, which must be possible by ``masses``."""
        if not masses[result] > 0:
            self._differ(f"{name}: an answer of probability 0 came")
            return int(masses.argmax())
        self._mass = float(masses[result])
        return result

    def _values(self, scores: Any) -> Any:
        """Return the values of a noise vector."""
        values, ids = np.zeros(scores.shape), scores.ids
        for block in scores.blocks:
            mine = (ids >= block.known.first) & (ids < block.known.first + block.size)
            values[mine] = self._blocks[id(block.known)][1][ids[mine] - block.known.first]
        with np.errstate(all="ignore"):
            for step in scores.steps:
                values = images(step, values)
        return np.where(scores.random, np.minimum(np.maximum(values, scores.low), scores.high), scores.numbers)

    def learn(self, uniforms: Iterable[Any]) -> None:
        """Compute and store the values of ``uniforms`` from their known intervals."""
        for uniform in uniforms:
            self.value(uniform)

    def value(self, uniform: Any) -> float:
        """Return the value of a uniform number. Raises ``Parted`` if the recorded draws behind it differ in value."""
        mine, known = self._numbers[id(uniform)], uniform.known
        number = self._numbers.setdefault(id(known), mine._replace(of=known))
        if number.item.low != mine.item.low:
            raise self._part(f"{uniform.draw.name} is examined as a number drawn before, which had another value")
        return number.value

    def whole(self, of: Any, otherwise: float) -> int:
        """Return the recorded integer; a share in float64 cannot represent one of very many outcomes exactly."""
        outcome, steps = self._numbers[id(of.uniform)].item.outcome, of.steps
        added = int(steps[2].number) if len(steps) == 3 and steps[2].name == "plus" else 0
        plainly = [step.name for step in steps] in (["times", FLOOR.name], ["times", FLOOR.name, "plus"])
        return int(otherwise) if outcome is None or not plainly else outcome + added

    def evaluate(self, of: Any) -> float:
        """Return the value of an expression of random numbers."""
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
        """Return index pairs of numbers in one block that are equal in the plain run but separate in the examined one.

        Returns an empty set if there are many.
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
        """Return the first recorded call that the examined run did not make; "" if it made all."""
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
        """Return the recorded outcome ``result``, or the nearest outcome of positive probability."""
        if masses[result] > 0:
            self._mass = masses[result]
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
