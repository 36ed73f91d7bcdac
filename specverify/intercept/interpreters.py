"""Sources of draws that follow given random numbers, or a given path, instead of trying all outcomes.

A plain run is one in which the libraries draw their own numbers. ``Coupled`` repeats a recorded plain run with symbolic
numbers: each new symbolic number gets the next recorded value, and each draw takes the branch that contains it. So the
run with symbolic numbers must return the result of the plain run.

``Gathered`` follows a path that an enumeration has chosen, and collects the constraints on its numbers. Afterwards
``numbers`` draws values inside the intervals of the path, so that a plain run can repeat the path.

Both are used instead of ``Enumerated``, the source of draws of an enumeration. Both evaluate expressions of several
numbers by the function ``value_of``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, combinations
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.distributions import GOLDEN
from specverify.intercept.recorded_numbers import Item, NotRecorded, items_of
from specverify.intercept.recorder import Record, Recorder
from specverify.intercept.run import RUNS, mode_with, nobody_answers
from specverify.intercept.symbolic.continuous import Continuous, Extreme, Joined
from specverify.intercept.symbolic.steps import FLOOR
from specverify.intercept.symbolic.together import VALUE_OF
from specverify.intercept.symbolic.vectors import of as images
from specverify.laws.rounding import FLOAT32
from specverify.reference import Draws, Pmf, Site

TIE = 8 * FLOAT32
"""A number within this distance of a comparison's bound is a tie of rounding: float32 may decide it either way."""
CLEAR = 16 * FLOAT32
"""Smallest distance between a drawn number and the bounds at which results change."""


def value_of(of: Any, uniform_value: Callable[[Any], float]) -> float:
    """Return the value of ``of``, an expression of random numbers; ``uniform_value(u)`` is the value of a uniform u."""
    if isinstance(of, Extreme):
        return float(sorted((value_of(part, uniform_value) for part in of.parts), reverse=of.largest)[of.rank])
    if isinstance(of, Continuous):
        result = uniform_value(of.uniform)
    elif isinstance(of, Joined):
        result = float(VALUE_OF[of.name](*(value_of(part, uniform_value) for part in of.operands)))
    else:
        return float(of)
    for step in of.steps:
        result = step.of(result)
    return float(min(max(result, of.low), of.high))


def _side(value: float, bound: float, *, or_equal: bool) -> int:
    """Return 0 if ``value`` is below ``bound``, else 1; with ``or_equal``, equality gives 0 too."""
    return int(not (value <= bound if or_equal else value < bound))


def _is_near(value: float, bound: float, spacing: float, least: float = 1.0) -> bool:
    """Return whether ``value`` equals ``bound`` up to rounding: within ``spacing * max(least, |bound|)``."""
    return abs(value - bound) <= spacing * max(least, abs(bound))


def _least(values: Sequence[float]) -> tuple[int, float]:
    """Return the index of the smallest of ``values``, and the second smallest value (infinity if there is none)."""
    result = min(range(len(values)), key=values.__getitem__)
    return result, min((value for place, value in enumerate(values) if place != result), default=math.inf)


def _ring_time(u: float, runner: Any) -> float:
    """Return the exponential time at which the clock ``runner`` rings if its uniform has the value ``u``.

    In a race, each entry has a clock, and the first clock that rings wins.
    """
    u = 1 - u if runner.flipped else u
    return -math.log(u) / runner.rate if u > 0 else math.inf


MOST_SHOWN = 8
"""Largest number of weights that a message lists."""
MOST_COMPARED = 64
"""Limit of numbers of one run that are tested for equality: among more, some float32 numbers are equal by chance."""


class Parted(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if a run with symbolic numbers differs from the recorded run of the unchanged program that it repeats.

    The message states how the two differ.
    """


class _Rest:
    """The position of a uniform number inside the interval to which comparisons have confined the number.

    ``at`` is the relative position: 0 at the start of the interval, 1 at its end. ``width`` is the width of the
    interval. A comparison that involves other numbers too, such as a race, sets ``width`` to 0; then the position is no
    longer updated.
    """

    __slots__ = ("at", "width")

    def __init__(self, at: float) -> None:
        self.at, self.width = at, 1.0


class _Number(NamedTuple):
    """A uniform number, and the value that it had in the recorded run of the unchanged program.

    ``item`` is the entry of the record from which the value is taken.
    """

    of: Any
    """The uniform, or its constraints (``known``). The reference keeps its ``id`` from being reused."""
    value: float
    item: Item
    block: Any
    """The interception block in which the number was drawn. Only numbers of one block are compared for reuse."""


class _LawOfDraw(NamedTuple):
    """The probabilities of ``of``, a draw with very many outcomes, some of which were excluded by comparisons.

    ``masses`` is the pmf before any comparison. ``possible``, an array of bools, states which outcomes are still
    possible.
    """

    of: Any
    masses: Any
    possible: Any


class Coupled:
    """A source of draws that makes a run with symbolic numbers repeat a recorded plain run.

    A plain run is one in which the libraries draw their own numbers. A comparison of a symbolic number has the result
    that the recorded number gives. For a comparison of one uniform, the result is computed a second way: from the
    relative position of the number in its interval and the probabilities of the results. If the two disagree, an
    interval or a probability is wrong, and a difference is recorded. A program may also draw by calling
    ``draws.categorical`` itself; the source of draws ``named``, a parameter of the constructor, chooses these outcomes.
    """

    def __init__(self, recorder: Recorder, named: Draws, rng: np.random.Generator) -> None:
        """Read the numbers that ``recorder`` recorded while the libraries drew their own numbers: the plain run.

        ``named`` answers the draws of a decoder that gets ``draws`` as an argument and calls ``draws.categorical``.
        ``rng`` chooses a value for a number of which only an interval is recorded.
        """
        self._named, self._rng = named, rng
        self._records: deque[Record] = deque(recorder.records)
        self._keys: deque[Any] = deque(recorder.keys)
        self.by_keys = False
        """Whether JAX drew: its numbers are a function of keys, which a program may keep from run to run."""
        self._items: deque[Item] = deque()
        self._of: Record | None = None
        self._numbers: dict[int, _Number] = {}
        """Identity of a uniform, or of its constraints (``known``) -> the number with its recorded value."""
        self._rests: dict[int, _Rest] = {}
        self._told: dict[Any, list[tuple[float, bool]]] = {}
        """Quantity of several numbers -> its earlier comparisons: (bound, whether the quantity was below the bound)."""
        self._blocks: dict[int, tuple[Any, Any]] = {}
        """Identity of the constraints of a noise vector -> the constraints, and its recorded values."""
        self._laws: dict[int, _LawOfDraw] = {}
        """Identity of a draw among very many outcomes -> its law, and the outcomes that are still possible."""
        self._answered: list[float] = []
        """The probability of each outcome of a draw, and of each result of a comparison, in the order of the run."""
        self._order: set[tuple[int, int]] = set()
        """Pairs of clocks (identities): the first is known to ring before the second."""
        self.ties: list[str] = []
        """Descriptions of the comparisons whose result depends on rounding."""
        self.parted: list[str] = []
        """Descriptions of the differences between the plain run and its repetition, in the order of detection."""

    # What interception tells

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of a draw from ``pmf`` that a decoder makes by calling ``draws.categorical`` itself.

        The source of draws that was passed to the constructor chooses the outcome; ``site`` names the decision.
        """
        return self._named.categorical(pmf, site)

    def key(self) -> Any:
        """Return the next JAX key that the program received in the recorded run of the unchanged program.

        Raises ``Parted`` if the program received no more keys in that run.
        """
        if not self._keys:
            raise self._part("the program requests a key that the plain run did not request")
        return self._keys.popleft()

    def push(self, items: Sequence[Item]) -> None:
        """Insert ``items`` before the recorded numbers that are not used yet, so that the next draws get ``items``."""
        self._items.extendleft(reversed(items))

    def take(self, uniform: Any) -> None:
        """Assign a value to ``uniform``, a new symbolic number: the number that was recorded at this point.

        The record is that of a run of the unchanged program. If only an interval is recorded for this number, a value
        in the interval is chosen. For an element of a vector, and for the best number of a race, the value was computed
        before by ``take_block`` or ``best_of_many``. Raises ``Parted`` if an outcome was recorded at this point instead
        of a number.
        """
        recorded = getattr(uniform.draw, "recorded", None)
        item = self._next(uniform.draw.name) if recorded is None else Item(value := recorded(self), value)
        if math.isnan(item.low):
            raise self._part(f"{uniform.draw.name} makes a number, and {self._of} drew an outcome")
        with nobody_answers():
            value = item.low if item.low == item.high else float(self._rng.uniform(item.low, item.high))
        self._numbers[id(uniform)] = _Number(uniform, value, item, RUNS.blocks[-1] if RUNS.blocks else None)

    def take_block(self, block: Any) -> None:
        """Assign values to the elements of ``block``, a vector of random numbers drawn in one call.

        The values are the numbers that the unchanged program drew at this point of the recorded run. Raises ``Parted``
        if the record has too few numbers here, or an outcome. Raises ``Parted`` also if interception treats the vector
        as equal to an earlier vector that had other values in the recorded run.
        """
        first = self._next(block.draw.name)
        rest = [self._items.popleft() for _ in range(min(block.size - 1, len(self._items)))]
        values = np.array([first.low, *(item.low for item in rest)])
        if len(values) < block.size:
            raise self._part(f"{block.draw.name} makes {block.size} numbers, and {self._of} drew {len(values)}")
        if np.isnan(values).any():
            raise self._part(f"{block.draw.name} makes numbers, and {self._of} drew an outcome")
        before = self._blocks.setdefault(id(block.known), (block.known, values))[1]
        if not np.array_equal(before, values):
            raise self._part(f"{block.draw.name} is examined as a draw made before, which had other values")

    def in_block(self, block: Any, number: int) -> float:
        """Return the value of element ``number`` of ``block`` in the recorded run of the unchanged program.

        ``block`` is a vector of random numbers from one call.
        """
        return float(self._blocks[id(block.known)][1][number])

    def take_outcome(self, draw: Any) -> Item:
        """Return the next recorded item, which belongs to the draw ``draw``, and remove it from the record."""
        return self._next(draw.name)

    def outcome(self, pmf: Any, item: Item, name: str) -> int:
        """Return the outcome recorded in ``item`` for a draw from ``pmf`` by the call ``name``.

        For a recorded uniform number the outcome is found by inverse CDF over ``pmf``. Raises ``Parted`` if a recorded
        outcome has probability 0, or if recorded weights are not proportional to ``pmf``.
        """
        masses = np.asarray(pmf, dtype=np.float64)
        if item.outcome is None:
            result = int(np.searchsorted(np.cumsum(masses), item.low, "right"))
            self._answered.append(float(masses[min(result, len(masses) - 1)]))
            return result
        if not 0 <= item.outcome < len(masses) or not masses[item.outcome] > 0:
            raise self._part(f"{name} draws one of {_shown(masses)}, but {self._of} drew {item.outcome}")
        if item.weights is not None:
            weights = np.asarray(item.weights, dtype=np.float64)
            if len(weights) != len(masses) or np.abs(weights / weights.sum() - masses).max() > TIE:
                raise self._part(f"{name} draws with weights {_shown(masses)}, expected {_shown(weights)}")
        self._answered.append(float(masses[item.outcome]))
        return item.outcome

    def agree(self, outcome: int, pmf: Any, item: Item, name: str) -> None:
        """Check the record of a draw that interception treats as equal to an earlier draw with the outcome ``outcome``.

        ``item`` is the record of the new draw, ``pmf`` its law, and ``name`` the name of the drawing call. Raises
        ``Parted`` if the recorded outcome is another one.
        """
        if outcome != self.outcome(pmf, item, name):
            raise self._part(f"{name} is examined as a draw made before, which gave another outcome")

    def open_end(self, element: Any, law: Sequence[tuple[Any, float]]) -> None:
        """Draw ``element``, an outcome that the program returned without reading it, and check its law.

        An example is the last token of a run. An enumeration does not branch at its draw, but computes ``law``, the
        pairs (value, probability). A difference is recorded if the drawn value has another probability in ``law`` than
        in the draw.
        """
        before = len(self._answered)
        value = element.value()
        asked, masses = self._answered[before:], [mass for each, mass in law if each == value]
        if not masses or (asked and len(masses) == 1 and abs(masses[0] - asked[-1]) > TIE):
            self._differ(f"the last token is {value}, with probability {asked[-1:]}, and unread it has {masses}")

    def cell(self, uniform: Any, pmf: Any, lies: Callable[[float], int]) -> int:
        """Return the result of a comparison of ``uniform``, by its value in the recorded run of the unchanged program.

        The result is an index. A comparison of one number divides its interval at the compared bounds, and the index is
        that of the part that contains the value. For a comparison of several numbers, the index is 0 for true and 1 for
        false. ``pmf`` has the probability of each index, and ``lies(value)`` returns the index for a value. A
        difference is recorded if the index does not agree with ``pmf``.
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
        """Return 0 if ``of``, a quantity of several ``uniforms`` such as their sum, is below ``bound``, else 1.

        The quantity is computed from the values that the uniforms had in the recorded run of the unchanged program.
        With ``or_equal``, equality gives 0 too.
        """
        for uniform in uniforms:
            self._rests[id(uniform.known)] = rest = _Rest(0.0)
            rest.width = 0.0
        value = value_of(of, self.value)
        for bound_before, below in self._told.setdefault(of, []):
            if (below and bound > bound_before) or (not below and bound < bound_before) or bound == bound_before:
                self._differ(f"{uniforms[0].draw.name}: the same joint comparison of several numbers is made twice")
        self._told[of].append((bound, value < bound))
        if _is_near(value, bound, TIE):
            self.ties.append(f"{uniforms[0].draw.name}: {value} and {bound}")
        return _side(value, bound, or_equal=or_equal)

    def first(self, pmf: Any, runners: Sequence[Any]) -> int:
        """Return the index in ``runners`` of the clock that rings first.

        A clock is an exponential time, computed from the value that a uniform had in the recorded run of the unchanged
        program. ``pmf`` is the law of the index. If the index has probability 0, a difference is recorded.
        """
        times = [_ring_time(self._numbers[id(runner.known)].value, runner) for runner in runners]
        name, known = str(runners[0].known.site[:2]), [id(runner.known) for runner in runners]
        if any(all((one, other) in self._order for other in known if other != one) for one in known):
            self._differ(f"{name}: the order of the same numbers is requested twice")
        result = self._least(times, [float(mass) for mass in pmf], name)
        behind = {later for other in known for later in (other, *(b for a, b in self._order if a == other))}
        self._order |= {(known[result], later) for later in behind - {known[result]}}
        return result

    def largest(self, pmf: Any, scores: Sequence[Any], *, first: bool = True) -> int:
        """Return the index of the largest of ``scores``, or of the smallest if ``first`` is False.

        The scores are computed from the random numbers of the recorded run of the unchanged program. ``pmf`` is the law
        of the index. If the index has probability 0, a difference is recorded.
        """
        values, sign = [value_of(score, self.value) for score in scores], -1.0 if first else 1.0
        return self._least([sign * value for value in values], [float(mass) for mass in pmf], "a race")

    def largest_of_many(self, scores: Any) -> int:
        """Return the index of the largest element of ``scores``, a vector of random scores.

        The scores are computed from the random numbers that the unchanged program drew in the recorded run.
        """
        values = self._values(scores)
        result = int(values.argmax())
        others = np.delete(values, result)
        if others.size and values[result] - others.max() <= TIE * max(1e-30, abs(values[result])):
            self.ties.append(f"a race: {values[result]} and {others.max()}")
        return result

    def best_of_many(self, scores: Any, rates: Any) -> float:
        """Return a value for the uniform that decides the best score in a race of very many entries.

        In the race, entry i has a clock that rings at rate ``rates[i]``, and the first ring wins. T is the time of the
        first ring in the recorded run of the unchanged program, computed from the recorded values of ``scores``. The
        result is the probability that no clock rings before T.
        """
        winner = self.largest_of_many(scores)
        block = next(each for each in scores.blocks if 0 <= scores.ids[winner] - each.known.first < each.size)
        u = self.in_block(block, int(scores.ids[winner] - block.known.first))
        return float(u ** (rates.sum() / rates[winner]))

    def looked_up(self, of: Any, bounds: Any, law: Any) -> int:
        """Return how many of ``bounds`` are at or below the recorded value of the number ``of``.

        It is the value in the run of the unchanged program that is repeated. ``law`` is the pmf of this count. A
        difference is recorded if the value lies outside the interval that ``law`` assigns to the count.
        """
        value, known, name = value_of(of, self.value), of.uniform.known, of.uniform.draw.name
        result = int(np.searchsorted(bounds, value, "right"))
        near = np.abs(bounds[max(result - 1, 0) : result + 1] - value)
        if (near <= TIE * max(1.0, abs(value))).any():
            self.ties.append(f"{name}: {value} among bounds")
        position = (self.value(of.uniform) - known.low) / (known.high - known.low)
        before = float(law[:result].sum() if of.increasing else law[result + 1 :].sum())
        if not before - TIE <= position <= before + float(law[result]) + TIE:
            self._differ(f"{name}: the answer has another weight than the interval it means")
        return result

    def among(self, draw: Any, masses: Any, result: int, name: str, inside: Any = None) -> int:
        """Check ``result``, the recorded outcome of ``draw``, a draw with very many outcomes, and return it.

        If ``result`` has probability 0, a difference is recorded, and the likeliest outcome is returned instead.

        Args:
            draw: The draw.
            masses: Probabilities of the outcomes. If they do not follow from the earlier comparisons, a difference is
                recorded.
            result: The outcome.
            name: Name of the draw in messages.
            inside: Mask of the outcomes if the program only tests whether the outcome is in this mask; None if it reads
                the outcome.
        """
        law, possible = self._laws.setdefault(id(draw), _LawOfDraw(draw, masses, np.ones(len(masses), dtype=bool)))[1:]
        given = np.where(possible, law, 0.0)
        if np.abs(masses / masses.sum() - given / given.sum()).max() > TIE:
            self._differ(f"{name}: the law of an outcome does not follow from what was asked about it before")
        if not masses[result] > 0:
            self._differ(f"{name}: an answer of probability 0 came")
            return int(masses.argmax())
        if inside is not None:
            self._laws[id(draw)] = _LawOfDraw(draw, law, possible & (inside == inside[result]))
        self._answered.append(float(masses[result]))
        return result

    def _values(self, scores: Any) -> Any:
        """Return the values of ``scores``, a noise vector, in the recorded run of the unchanged program."""
        values, ids = np.zeros(scores.shape), scores.ids
        for block in scores.blocks:
            mine = (ids >= block.known.first) & (ids < block.known.first + block.size)
            values[mine] = self._blocks[id(block.known)][1][ids[mine] - block.known.first]
        with np.errstate(all="ignore"):
            for step in scores.steps:
                values = images(step, values)
        return np.where(scores.random, np.minimum(np.maximum(values, scores.low), scores.high), scores.numbers)

    def learn(self, uniforms: Iterable[Any]) -> None:
        """Check that interception treats ``uniforms`` as equal only if the unchanged program drew equal numbers.

        Raises ``Parted`` if interception treats one of ``uniforms`` as equal to an earlier number, and the two have
        different values in the recorded run.
        """
        for uniform in uniforms:
            self.value(uniform)

    def value(self, uniform: Any) -> float:
        """Return the value of a uniform number in the recorded run of the unchanged program.

        Raises ``Parted`` if interception treats the number as equal to an earlier number, and the two have different
        values in the recorded run.
        """
        mine, known = self._numbers[id(uniform)], uniform.known
        number = self._numbers.setdefault(id(known), mine._replace(of=known))
        if number.item.low != mine.item.low:
            raise self._part(f"{uniform.draw.name} is examined as a number drawn before, which had another value")
        return number.value

    def whole(self, of: Any, otherwise: float) -> int:
        """Return the integer that the unchanged program drew for ``of``, a symbolic integer with very many values.

        A uniform in float64 cannot represent such an integer exactly, so the integer is recorded too. Return
        ``otherwise``, as an integer, if none was recorded, or if ``of`` was computed from the drawn integer.
        """
        outcome, steps = self._numbers[id(of.uniform)].item.outcome, of.steps
        added = int(steps[2].number) if len(steps) == 3 and steps[2].name == "plus" else 0
        plainly = [step.name for step in steps] in (["times", FLOOR.name], ["times", FLOOR.name, "plus"])
        return int(otherwise) if outcome is None or not plainly else outcome + added

    def twins(self) -> frozenset[tuple[int, int]]:
        """Return the pairs of numbers that interception treats as independent, but that are equal in the recorded run.

        Such a pair may show that interception has missed a reuse of randomness. A pair has the indices of two uniform
        numbers of one run, in the order in which they were drawn. The result is empty for more than ``MOST_COMPARED``
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
        """Return a sentence on the first recorded call that this run has not repeated; "" if there is none.

        The record is that of the plain run, in which the libraries drew their own numbers. This run repeats it with
        symbolic numbers, so a call without a repetition is a difference between the two.
        """
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

    def _least(self, values: list[float], masses: list[float], name: str) -> int:
        result, second = _least(values)
        if _is_near(second, values[result], TIE, 1e-30):
            self.ties.append(f"{name}: {values[result]} and {second}")
        return self._possible(result, masses, name)

    def _possible(self, result: int, masses: list[float], name: str) -> int:
        """Return ``result``, the index of an outcome, if its probability ``masses[result]`` is positive.

        Otherwise record a difference, with the ``name`` of the draw, and return the likeliest outcome.
        """
        if masses[result] > 0:
            self._answered.append(masses[result])
            return result
        self._differ(f"{name}: an answer of probability 0 came")
        return max(range(len(masses)), key=masses.__getitem__)

    def _by_rest(self, rest: _Rest, result: int, masses: list[float], name: str) -> int:
        ends = [0.0, *accumulate(masses)]
        if rest.width > 0:
            off = max(ends[result] - rest.at, rest.at - ends[result + 1])
            if off > TIE / rest.width:
                self._differ(f"{name}: the answer has another weight than the interval it means")
            elif min(abs(rest.at - end) for end in ends[1:-1]) <= TIE / rest.width:
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


def _shown(weights: Any) -> str:
    return str(weights.tolist() if len(weights) <= MOST_SHOWN else [*weights[:MOST_SHOWN].tolist(), "..."])


def _draws(record: Record) -> bool:
    """Return whether the call of ``record`` drew a number.

    A call whose result has no elements draws none. A call for which ``recorded_numbers`` has no rule counts as drawing.
    """
    try:
        return bool(items_of(record))
    except NotRecorded:
        return True


# Gathered

MARGIN, ENDS = 0.02, (0.02, 0.98)
"""One of three numbers is drawn near an end of its interval, because a wrong threshold shows there first."""
TRIES = 400
"""Number of attempts to draw numbers that satisfy several constraints jointly."""


class _Slot:
    """A variable for the outcome of one categorical draw on a path (``outcome``): None until the program reads it."""

    __slots__ = ("number", "outcome")

    def __init__(self) -> None:
        self.outcome: int | None = None
        self.number = math.nan
        """A uniform number whose look-up in the cumulative weights gives the outcome; NaN until that is read."""


class _PathQuestion(NamedTuple):
    """A comparison of symbolic numbers, and its result on the path.

    ``known`` has the constraints of each compared number. ``holds(values)`` returns whether the comparison has the same
    result if the numbers have the given ``values``.
    """

    known: tuple[Any, ...]
    holds: Callable[[_Values], bool]


class _Near(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if values are within rounding of the point where a comparison changes its result."""


class Gathered:
    """A source of draws that follows one path, and collects the constraints on the symbolic numbers of the path.

    Another source of draws, a parameter of the constructor, chooses the path. At the end, the method ``numbers`` draws
    values for the symbolic numbers until every comparison has the same result as on the path.
    """

    def __init__(self, named: Draws) -> None:
        """Start without draws. ``named``, another source of draws, chooses every outcome and every branch."""
        self._named = named
        self._slots: list[Any] = []
        self._questions: list[_PathQuestion] = []
        self._asked: tuple[Any, ...] = ()
        self._wholes: dict[int, int] = {}
        """Identity of the constraints of a number -> the integer that the program received for it."""
        self.by_name: list[int] = []
        """The outcomes of the draws that the program itself makes by calling ``draws``."""

    # What interception tells

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the outcome of a draw from ``pmf`` that a decoder makes by calling ``draws.categorical`` itself.

        The source of draws that was passed to the constructor chooses the outcome; ``site`` names the decision.
        """
        self.by_name.append(self._named.categorical(pmf, site))
        return self.by_name[-1]

    def key(self) -> Any:
        """Raise ``NotRecorded``, which ends the run for a program that uses JAX.

        JAX computes its numbers from keys, so they cannot be replaced by given numbers.
        """
        raise NotRecorded("the numbers of JAX are a function of keys")

    def push(self, _items: Sequence[Item]) -> None:
        """Raise ``NotRecorded``, which ends the run for a program that uses JAX.

        JAX computes its numbers from keys, so they cannot be replaced by given numbers.
        """
        self.key()

    def take(self, uniform: Any) -> None:
        """Record that ``uniform``, a new symbolic number, was drawn.

        The method ``numbers`` chooses its value at the end.
        """
        self._slots.append(uniform)

    def take_block(self, _block: Any) -> None:
        """Raise ``NotRecorded``: a vector of random numbers as long as a real vocabulary cannot get given values."""
        raise NotRecorded("noise vectors are not fed")

    def open_end(self, _element: Any, _law: Any) -> None:
        """Do nothing: an outcome that the program never read has no constraint."""

    def take_outcome(self, _draw: Any) -> _Slot:
        """Add a slot for the outcome of the next categorical draw, and return the slot."""
        slot = _Slot()
        self._slots.append(slot)
        return slot

    def outcome(self, pmf: Any, slot: _Slot, name: str) -> int:
        """Return the outcome in ``slot`` of a draw from ``pmf``.

        When it is read first, the source of draws that was passed to the constructor chooses it. ``name`` is the name
        of the drawing call.
        """
        if slot.outcome is None:
            with nobody_answers():
                slot.outcome = int(self._named.categorical(pmf, (name, "outcome")))
            slot.number = _number_of(pmf, slot.outcome)
        return slot.outcome

    def agree(self, outcome: int, pmf: Any, slot: _Slot, _name: str) -> None:
        """Store ``outcome`` in ``slot``: the draw of ``slot`` has the same outcome as an earlier draw.

        Both draws were made from one generator state in the same way. ``pmf`` is the law of the outcome.
        """
        slot.outcome, slot.number = outcome, _number_of(pmf, outcome)

    def cell(self, uniform: Any, pmf: Any, lies: Callable[[float], int]) -> int:
        """Return the result of a comparison on this path, an index with the law ``pmf``.

        The source of draws passed to the constructor chooses the index. A comparison of one number divides the interval
        of ``uniform`` at the compared bounds, and the index is that of the part in which the path continues. If several
        numbers are compared, the index is 0 for true and 1 for false. ``lies(value)`` returns the index for a value of
        the uniform. It is stored, so that ``numbers`` can choose a value with this index.
        """
        answer, known = self._ask(pmf, uniform.draw.name), uniform.known
        self._asked = (known,)
        lies(0.5)  # of several numbers it calls ``holds``, which tells them
        self._questions.append(_PathQuestion(self._asked, lambda values: lies(values[known]) == answer))
        return answer

    def holds(self, uniforms: Sequence[Any], _of: Any, _bound: float, *, or_equal: bool) -> int:
        """Store ``uniforms``, the numbers of one comparison, so that ``cell`` can attach the constraint to all of them.

        ``cell`` calls this method indirectly. The parameters, also ``or_equal``, are those of ``Coupled.holds``; the
        result 0 or 1 is not used.
        """
        self._asked = tuple(uniform.known for uniform in uniforms)
        return int(or_equal)

    def among(self, _draw: Any, _masses: Any, result: int, _name: str, _inside: Any = None) -> int:
        """Return ``result``, the outcome of a draw with very many outcomes, unchanged.

        ``outcome`` or ``looked_up`` has chosen it before.
        """
        return result

    def looked_up(self, of: Any, _bounds: Any, law: Any) -> int:
        """Return how many of ``_bounds`` are at or below the number ``of`` on this path.

        ``law`` is the pmf of this count. The source of draws that was passed to the constructor chooses the count, and
        the uniform of the number is confined to the interval that ``law`` assigns to the count.
        """
        answer, known = self._ask(law, of.uniform.draw.name), of.uniform.known
        width = known.high - known.low
        before = float(law[:answer].sum() if of.increasing else law[answer + 1 :].sum())
        known.low, known.high = known.low + before * width, known.low + (before + float(law[answer])) * width
        return answer

    def first(self, pmf: Any, runners: Sequence[Any]) -> int:
        """Return the index of the clock in ``runners`` that rings first on this path.

        A clock is an exponential time computed from a uniform. ``pmf`` is the law of the index. The source of draws
        that was passed to the constructor chooses the index, and the choice is stored as a constraint on the uniforms.
        """
        answer = self._ask(pmf, str(runners[0].known.site[:2]))
        known = tuple(runner.known for runner in runners)

        def holds(values: _Values) -> bool:
            return _clearly_least([_ring_time(values[runner.known], runner) for runner in runners]) == answer

        self._questions.append(_PathQuestion(known, holds))
        return answer

    def largest(self, pmf: Any, scores: Sequence[Any], *, first: bool = True) -> int:
        """Return the index of the largest of ``scores``, or with ``first`` False of the smallest, on this path.

        ``pmf`` is the law of the index. The source of draws passed to the constructor chooses the index. The choice is
        stored as a constraint on the uniforms in the scores.
        """
        answer, sign = self._ask(pmf, "a race"), -1.0 if first else 1.0
        known = tuple(uniform.known for score in scores for uniform in _uniforms(score))

        def holds(values: _Values) -> bool:
            return _clearly_least([sign * values.evaluate(score) for score in scores]) == answer

        self._questions.append(_PathQuestion(known, holds))
        return answer

    def learn(self, _uniforms: Iterable[Any]) -> None:
        """Do nothing: a path has no recorded values that could disagree with interception (see ``Coupled.learn``)."""

    def value(self, uniform: Any) -> float:
        """Return a value for ``uniform`` inside its interval, from which the caller computes a random integer.

        The integer has very many possible values. Each call on the path uses another relative position, so that
        integers differ.
        """
        known, share = uniform.known, (GOLDEN * (1 + len(self._wholes))) % 1.0
        return float(known.low + (known.high - known.low) * share)

    def whole(self, of: Any, otherwise: float) -> int:
        """Return ``otherwise`` as an integer, after storing it as the value of the symbolic integer ``of``.

        ``of`` has very many possible values, and the caller has chosen ``otherwise`` among them.
        """
        added = int(of.steps[-1].number) if of.steps[-1].name == "plus" else 0
        self._wholes[id(of.uniform.known)] = int(otherwise) - added
        return int(otherwise)

    def _ask(self, pmf: Any, name: str) -> int:
        with nobody_answers():
            return int(self._named.categorical(pmf, (name, "question")))

    # What it gathered

    def numbers(self, rng: np.random.Generator) -> list[Item] | None:
        """Return random numbers and outcomes with which the unchanged program takes the same path, or None.

        There is one item for each draw of the path, in order: an outcome, or the value of a random number, chosen by
        ``rng``. The result is None if an interval is not wider than rounding, or if no values were found in ``TRIES``
        attempts.
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
        """Divide the symbolic numbers into groups that can be given values separately, and yield the groups.

        Numbers that occur in one comparison belong to one group. ``known`` maps the identity of each number's
        constraints to the constraints.
        """
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
        """Return whether all comparisons of this group have the results of the path at ``values``.

        Also returns False if a value is within rounding of a point at which a result changes.
        """
        try:
            with mode_with(coupled=values):
                return all(question.holds(values) for question in self.questions)
        except _Near:
            return False


class _Values:
    """Values of the symbolic numbers of a path; evaluates comparisons at these values."""

    def __init__(self) -> None:
        self._of: dict[int, float] = {}

    def __getitem__(self, known: Any) -> float:
        return self._of[id(known)]

    def draw(self, known: Iterable[Any], rng: np.random.Generator, wholes: dict[int, int]) -> bool:
        """Choose a value inside its interval for each number; return False if an interval is not wider than rounding.

        ``known`` has the constraints of the numbers; ``rng`` chooses the values. ``wholes`` has the identities of the
        constraints of random integers with very many values; such a number gets the start of its interval.
        """
        for one in known:
            width = one.high - one.low
            if id(one) in wholes:
                self._of[id(one)] = one.low
                continue
            margin = max(width * MARGIN / 2, CLEAR)
            if not width > 2 * margin:
                return False
            place = rng.integers(3) if width < 1 else 2
            share = ENDS[place] if place < 2 else rng.random()
            self._of[id(one)] = min(max(one.low + width * share, one.low + margin), one.high - margin)
        return True

    def holds(self, _uniforms: Sequence[Any], of: Any, bound: float, *, or_equal: bool) -> int:
        """Return 0 if the value of ``of`` is below ``bound`` (or equal to it, with ``or_equal``), else 1.

        The value of ``of`` is computed from these values. Raises ``_Near`` if it is within rounding of ``bound``.
        """
        value = self.evaluate(of)
        if _is_near(value, bound, CLEAR):
            raise _Near
        return _side(value, bound, or_equal=or_equal)

    def evaluate(self, of: Any) -> float:
        """Return the value of ``of``, an expression of symbolic numbers, at these values."""
        return value_of(of, lambda uniform: self[uniform.known])


def _number_of(pmf: Any, outcome: int) -> float:
    """Return a uniform number that gives ``outcome``: the midpoint of its interval in the cumulative ``pmf``."""
    masses = np.asarray(pmf, dtype=np.float64)
    return float(masses[:outcome].sum() + masses[outcome] / 2)


def _clearly_least(values: Sequence[float]) -> int:
    """Return the index of the smallest of ``values``. Raises ``_Near`` if another one equals it within rounding."""
    result, second = _least(values)
    if _is_near(second, values[result], CLEAR, 1e-30):
        raise _Near
    return result


def _uniforms(of: Any) -> Iterator[Any]:
    """Yield the uniform numbers in an expression of symbolic numbers."""
    if isinstance(of, Continuous):
        yield of.uniform
    for part in (*getattr(of, "parts", ()), *getattr(of, "operands", ())):
        yield from _uniforms(part)
