"""Symbolic uniform numbers: comparisons, which are draws; the order of clocks; values that agree with all comparisons.

A ``Uniform`` has no value. The result of each comparison is drawn: its probability is the share of the interval in
which the uniform is known to lie. The result narrows the interval, so repeated comparisons have the right joint law.
``continuous`` has the operations that are possible before a comparison.

In a race (an argmax of random scores), exponential clocks ring one after the other, each at its own rate. The known
part of their order is a forest: a clock has rung before its descendants. Given the forest, each tree rings first at the
sum of its clocks' rates, and after its root has rung, its subtrees continue as if nothing were known. So every question
about the order needs only a few draws, and no draw repeats a known result: the first of some clocks, the next one, the
first of all if the first of each block is known.

**Two races of the same noise.** Let exponential clocks race at rates w, and let a be the first, at time T,
exponential with rate W, the sum of w. The noise of another clock j is then ``w_j T`` plus a fresh exponential E. At
other rates m clock j starts at ``c_j T`` with ``c_j = w_j / m_j``, and a rings at ``c_a T`` with certainty. No clock
has rung until ``x T`` with probability ``exp(-T h(x))``, where ``h(x)`` is the sum of ``m_j (x - c_j)`` over the
clocks with ``c_j < x``. So b is first with probability ``m_b`` times the integral of ``W / (W + h(x))^2`` from c_b to
c_a. Between two starts h is linear, and the integral over the piece is ``W (x' - x) / (W + h) (W + h')``.

**Two clocks.** If only two clocks take part in all races, clock 0 is first at rates w if and only if U < w_0 / (w_0 +
w_1), where U = E_0 / (E_0 + E_1) is uniform. Each race then is a lookup of one uniform number, however many there are.

After a run, each uniform can be given a value that agrees with all comparisons. A program that runs again with these
values computes with plain floats and must return the same result. Values are close to the ends of the known intervals,
where a program with another rule differs soonest.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from itertools import pairwise
from operator import le
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept import audit
from specverify.intercept.audit import AnsweredQuestion, Cell, Draw, Raced
from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import array, inf, isnan
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import mode, mode_with
from specverify.intercept.symbolic.together import Formula, Together
from specverify.laws import rounding
from specverify.laws.draws import AMONG, BELOW, TOGETHER
from specverify.reference import Draws, Site

# Order


ALIKE = 1e-6
"""Two rates within this relative distance are one rate, computed twice in float32."""


class Runner:
    """A clock of a race: its rate, and what is known about the order in which it and other clocks ring.

    The known order is stored as trees of clocks: a clock rings before its descendants.
    """

    __slots__ = ("after", "behind", "flipped", "known", "rate", "told")

    def __init__(self, rate: float, *, flipped: bool = False, known: Known | None = None) -> None:
        """Create a clock with ``rate`` and no known order.

        ``known`` are the constraints on the uniform u of the clock. The clock rings at time -log(u) / rate, or with
        ``flipped`` at time -log(1 - u) / rate.
        """
        self.rate, self.flipped, self.known = rate, flipped, known
        self.after: Runner | None = None
        """The clock that is known to ring before it, its parent in the forest; None for a root."""
        self.behind: list[Runner] = []
        self.told = False
        """Whether more than the order of its tree is known: a uniform of the tree was compared with a number."""

    def all_behind(self) -> Iterator[Runner]:
        """Yield this clock and every clock that is known to ring after it."""
        yield self
        for runner in self.behind:
            yield from runner.all_behind()

    def root(self) -> Runner:
        """Return the clock that is known to ring before all others whose order relative to this clock is known.

        A clock is an exponential random number that takes part in a race; it rings at the time that is its value.
        """
        return self if self.after is None else self.after.root()

    def put_behind(self, other: Runner) -> None:
        """Record that ``other`` rings before this clock: ``other`` becomes its parent in the forest."""
        if self.after is not None:
            self.after.behind.remove(self)
        self.after = other
        other.behind.append(self)


def first_of(wanted: Sequence[Runner], draw: Callable[[Any, Sequence[Runner]], int]) -> Runner:
    """Return the clock of ``wanted`` that rings first; the unknown part of the order is drawn and recorded.

    ``draw(pmf, clocks)`` returns an index into ``clocks``, drawn with the law ``pmf``.
    """
    front = list(dict.fromkeys(runner.root() for runner in wanted))
    while True:
        first = front[0]
        if len(front) > 1:
            rates = array([sum(each.rate for each in runner.all_behind()) for runner in front])
            first = front[draw(rates / rates.sum(), front)]
            for runner in front:
                if runner is not first:
                    runner.put_behind(first)
        if first in wanted:
            return first
        front = [runner for runner in first.behind if any(each in wanted for each in runner.all_behind())]


def agreed(runners: Sequence[Runner], rates: Sequence[float]) -> bool:
    """Change the rates of the exponential clocks ``runners`` to ``rates`` if their known order allows it.

    Returns whether it does; otherwise nothing is changed. A known order is a tree: a clock rings before the clocks
    below it. The rates of all clocks in one tree must change by the same factor; the other clocks of the tree then
    change too.
    """
    units: dict[Runner, float] = {}
    for runner, rate in zip(runners, rates, strict=True):
        unit = units.setdefault(runner.root(), rate / runner.rate)
        if not math.isclose(unit, rate / runner.rate, rel_tol=ALIKE):
            return False
    for root, unit in units.items():
        for runner in root.all_behind() if unit != 1 else ():
            runner.rate *= unit
    return True


# What an order tells of uniform numbers


class Place(NamedTuple):
    """The rank of a uniform among several independent uniforms of which nothing but the order is known.

    ``smaller`` of the ``number`` uniforms are smaller than this one.
    """

    smaller: int
    number: int
    """How many uniforms are ordered; ``smaller`` of them are smaller than this one."""

    def share_below(self, bound: float) -> float:
        """Return the probability that the uniform is below ``bound``.

        It is the probability that more than ``smaller`` of the ``number`` ranked uniforms are below ``bound``.
        """
        return _share_below(self.smaller, self.number, bound)


def alike(runner: Runner) -> bool:
    """Return whether the clock ``runner``, and all clocks in its tree, ring in the order of their uniforms.

    The tree has the clocks whose order was compared (see ``Runner``). True if these clocks have one rate and are all
    functions of u, or all of 1 - u.
    """
    return all((each.rate, each.flipped) == (runner.rate, runner.flipped) for each in runner.root().all_behind())


@lru_cache(maxsize=1 << 12)
def _share_below(smaller: int, number: int, bound: float) -> float:
    ways = range(smaller + 1, number + 1)
    return sum(math.comb(number, k) * bound**k * (1 - bound) ** (number - k) for k in ways)


def place_of(runner: Runner) -> Place | None:
    """Return the rank of the uniform of the clock ``runner`` among the uniforms of all clocks compared with it so far.

    The law of the uniform follows from this rank. A clock is an exponential time computed from a uniform u. The clock
    that rings first has the largest uniform, or the smallest if clocks are functions of 1 - u. Returns None if the
    races so far do not determine the rank.
    """
    root = runner.root()
    number, later = len(list(root.all_behind())), len(list(runner.all_behind())) - 1
    above = runner.after
    while above is not None and len(above.behind) == 1:
        above = above.after
    if above is not None or not alike(root):
        return None
    return Place(number - 1 - later if runner.flipped else later, number)


class RungTime(NamedTuple):
    """The law of a clock's uniform after a race at different rates, if it is only known whether this clock rang first.

    The first clock rings at a time T with the rate W, the sum of all rates. Let w be the rate of the clock of the
    uniform u, and E = -log u be exponential. If the clock is first, E is w T; if not, E is w T plus a fresh
    exponential. With k = W / w, E exceeds c with probability exp(-k c) in the first case and (k exp(-c) - exp(-k c)) /
    (k - 1) in the second.
    """

    share: float
    """k, the sum of all rates divided by the rate of the clock."""
    first: bool
    flipped: bool
    """Whether the clock is a function of 1 - u instead of u."""

    def share_below(self, bound: float) -> float:
        """Return the probability that the uniform is below ``bound``."""
        if self.flipped:
            return 1.0 - self._later(1.0 - bound)
        return self._later(bound)

    def _later(self, at: float) -> float:
        """Return the probability that exp(-E) is below ``at``, given whether the clock was the first of the race.

        exp(-E) is the uniform of the clock before the race: u, or 1 - u if ``flipped``.
        """
        if not 0 < at < 1:
            return float(at >= 1)
        more = self.share - 1
        return at**self.share if self.first else at - at * math.expm1(more * math.log(at)) / more


def rung_time(runner: Runner) -> RungTime | None:
    """Return the law of the time at which ``runner`` rings, given the order drawn so far; None if it is not known.

    ``runner`` is a clock: an exponential random number that takes part in a race (an argmin). The law is known for the
    first clock of a race, and for a clock of which it is only known that it is not the first.
    """
    root = runner.root()
    first = runner is root
    if not first and (runner.after is not root or runner.behind):
        return None
    return RungTime(sum(each.rate for each in root.all_behind()) / runner.rate, first, runner.flipped)


# Valued


MARGIN = 0.02
"""Relative distance that a value keeps from the ends of its interval, where programs may round."""
NARROW = 0.02
"""In an interval narrower than this, the margin is as small as the rounding of 16-bit floats."""
APART = 0.01
"""Two clock times within this relative distance may be taken for each other."""
_TRIES = 40


@contextmanager
def uniforms_made() -> Iterator[list[Uniform]]:
    """Context manager that yields a list, to which the uniforms drawn in the block are appended."""
    made: list[Uniform] = []
    with mode_with(made=made):
        yield made


def note(uniform: Uniform) -> None:
    """Record that ``uniform`` was drawn.

    If this run collects uniforms (``uniforms_made``), ``uniform`` is appended to the list. If the run repeats a plain
    run (``Coupled``), ``uniform`` gets the next recorded value.
    """
    now = mode()
    if now.made is not None:
        now.made.append(uniform)
    if now.coupled is not None:
        now.coupled.take(uniform)


def values_of(made: Iterable[Uniform], rng: np.random.Generator) -> list[float] | None:
    """Return, in order, a value for each uniform of ``made`` that agrees with all comparisons of this run.

    ``rng`` chooses the values. Returns None in three cases:

    * A uniform was compared together with others, or both raced and compared.
    * An interval is narrower than ``NARROW``.
    * No times are found for the clocks of a race.
    """
    known = [uniform.known for uniform in made]
    times: dict[Runner, float] = {}
    for root in {each.runner.root(): None for each in known if each.runner is not None}:
        result = _rung(root, rng)
        if result is None:
            return None
        times.update(result)
    values = [_value(each, times, rng) for each in {id(each): each for each in known}.values()]
    if any(value is None for value in values):
        return None
    by_number = dict(zip({id(each): each for each in known}, values, strict=True))
    return [float(by_number[id(each)]) for each in known]  # type: ignore[arg-type]  # none is None


def _value(known: Known, times: dict[Runner, float], rng: np.random.Generator) -> float | None:
    width = known.high - known.low
    if known.together or width < NARROW or (known.raced and known.runner is None):
        return None
    if known.runner is None:
        return known.low + width * float(rng.choice([MARGIN, 1 - MARGIN]))
    if width < 1:
        return None
    u = math.exp(-times[known.runner] * known.runner.rate)
    return 1 - u if known.runner.flipped else u


def _rung(root: Runner, rng: np.random.Generator) -> dict[Runner, float] | None:
    """Return a ring time, drawn by ``rng``, for the clock ``root`` and each clock that is known to ring after it.

    The times are drawn again until any two have a relative distance above ``APART``. Returns None if this fails
    ``_TRIES`` times.
    """
    for _ in range(_TRIES):
        times: dict[Runner, float] = {}
        _ring(root, 0.0, times, rng)
        order = sorted(times.values())
        if all(later - sooner > APART * later for sooner, later in pairwise(order)):
            return times
    return None


def _ring(root: Runner, after: float, times: dict[Runner, float], rng: np.random.Generator) -> None:
    """Draw a ring time for ``root`` and for each clock below it by ``rng``, and store the times in ``times``.

    ``root`` rings later than time ``after``; the clocks below it ring after ``root``.
    """
    rate = sum(runner.rate for runner in root.all_behind())
    times[root] = after + float(rng.exponential()) / rate
    for runner in root.behind:
        _ring(runner, times[root], times, rng)


# Uniform


NEVER_DRAWN = 2.0**-54
"""Smaller than the probability of any value of a float64 uniform; the two boundary values are tested separately."""


class Known:
    """The constraints on a uniform number: its interval [low, high), its races and its comparisons.

    The ``Uniform`` objects of equal draws, from the same generator state by the same call, share one object.
    """

    def __init__(self, site: Site, low: float = 0.0, high: float = 1.0) -> None:
        """Start with the constraint that the number drawn at ``site`` lies in [low, high)."""
        self.site, self.asked = site, 0
        self.low, self.high = low, high
        self.raced: Raced | None = None
        """The last race in which the number has taken part; None if it has not raced."""
        self.runner: Runner | None = None
        """The clock of the number in the known order; None before its first race, and if it cannot race again."""
        self.place: Place | RungTime | None = None
        """What the order of its race tells of the number; set when it is compared with a number."""
        self.together: Together | None = None
        """The joint constraints of the number and others; None if there are none."""
        self.questions: list[AnsweredQuestion] = []
        """The comparisons of the number, for the audit of reuse."""

    def share_below(self, bound: float) -> float:
        """Return the probability that the number is below ``bound``, given only the order of its race (``place``).

        If it has not raced, the number is uniform in [0, 1). Comparisons narrow its interval, and are not considered.
        """
        return bound if self.place is None else self.place.share_below(bound)


class Constraint(NamedTuple):
    """The constraint that one comparison's result sets on uniform numbers: an interval, or a relation of several."""

    known: tuple[Known, ...]
    """The uniform numbers that the draw constrains."""
    ends: tuple[float, ...] = ()
    """The ends of the intervals of the answers, from the lowest to the highest; empty if the answers are relations."""
    within: float = 0.0
    """Bound on the error of the probabilities, beside rounding."""


def note_constraint(site: Site, constraint: Constraint) -> None:
    """Record which uniforms lead to the outcome of the draw at ``site``, if this run collects such constraints.

    A certificate of an enumeration contains them.
    """
    constraints = mode().constraints
    if constraints is not None:
        constraints[site] = constraint


class Uniform:
    """A symbolic number, uniform in [0, 1): it has no value, and each comparison is a draw."""

    def __init__(self, draws: Draws, site: Site, draw: Draw | None = None) -> None:
        """Store ``draws``, which chooses the results of comparisons of this number; ``site`` names the number.

        ``draw`` identifies the generator state; None if it is not known.
        """
        self.draws, self.draw, self._site = draws, draw or Draw(site), site
        self._known: Known | None = None
        note(self)

    @property
    def known(self) -> Known:
        """Return the constraints on the number.

        If another draw from the same generator state returned the same number, both ``Uniform`` objects have the same
        constraints: a comparison of one of them also constrains the other.
        """
        if self._known is None:
            self._known = self.draw.shared(lambda: Known(self._site, *_looked_up_interval(self.draw)))
        return self._known

    @property
    def cut(self) -> bool:
        """Return whether a comparison of this number has narrowed its interval.

        If another draw returned the same number, comparisons through that draw count too.
        """
        if self._known is None and not self.draw.made_before:
            return False
        return self.known.low > 0 or self.known.high < 1

    def below(self, bound: float, place: str = "") -> bool:
        """Return whether the uniform is below ``bound``; unless earlier comparisons determine it, this is drawn.

        ``place`` is the line of the program that compares, by default the current line.
        """
        if isnan(bound) or not 0 < bound < 1:
            return bound >= 1
        known = self.known
        look(self.draw)
        self._placed(place)
        low, at, high = map(known.share_below, (known.low, min(max(bound, known.low), known.high), known.high))
        width = high - low
        if at - low < NEVER_DRAWN * width or high - at < NEVER_DRAWN * width:
            audit.record_comparison(known.questions, self.draw, (bound,), None, place)
            return at - low >= NEVER_DRAWN * width
        if known.together:
            answer = self._below_together(known.together, bound, place)
        else:
            cells = self._cells((bound,))
            answer = self._ask(BELOW, array([at - low, high - at]) / width, lambda u: int(u >= bound), cells) == 0
        cell = Cell(0, 0.0, bound) if answer else Cell(1, bound, 1.0)
        audit.record_comparison(known.questions, self.draw, (bound,), cell, place)
        known.low, known.high = max(known.low, cell.low), min(known.high, cell.high)
        return answer

    def interval_of(self, bounds: Sequence[float], place: str = "") -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the uniform (an inverse-CDF lookup).

        ``place`` is the line of the program that compares, by default the current line.
        """
        known = self.known
        look(self.draw)
        self._placed(place)
        sure = None if known.place is not None or known.together is not None else _only_interval(bounds, known)
        if sure is not None:
            rounding.looked_up(1)
            audit.record_comparison(known.questions, self.draw, bounds, None, place)
            return sure
        cells = self._cells(bounds)
        edges = np.array(cells.ends)
        masses = np.diff([*map(known.share_below, edges.tolist())])
        if (masses < 0).any():
            raise NeedsValue("unsorted-bounds", "a random number is looked up in bounds that are not sorted")
        if known.together:
            return next((number for number, bound in enumerate(bounds) if self.below(bound, place)), len(bounds))
        possible = np.count_nonzero(masses)
        drawn = possible > 1
        rounding.looked_up(int(possible))
        lies = partial(bisect_right, cells.ends[1:-1])
        result = self._ask(AMONG, masses / masses.sum(), lies, cells) if drawn else int(masses.argmax())
        cell = Cell(result, float([0.0, *bounds][result]), float([*bounds, 1.0][result]))
        audit.record_comparison(known.questions, self.draw, bounds, cell if drawn else None, place)
        known.low, known.high = float(edges[result]), float(edges[result + 1])
        return result

    def _placed(self, place: str) -> None:
        """Prepare a uniform that took part in a race (an argmax) for a comparison with a number.

        What the race has shown about the uniform, as far as the order of the racing numbers is already drawn, is stored
        as its law. Without a race nothing is stored. Raises ``NeedsValue`` if the order does not determine the law.
        ``place`` is the line that compares.
        """
        known, runner = self.known, self.known.runner
        if not known.raced or known.place is not None:
            return
        are_alike = runner is not None and alike(runner)
        if not are_alike:
            audit.compared_after(self.draw, known.raced)
        if runner is not None and not runner.told:
            known.place = place_of(runner) if are_alike else rung_time(runner)
        if runner is None or known.place is None:
            raise NeedsValue("second-race", "random noise that has already decided a race is compared with a number")
        for each in runner.root().all_behind():
            each.told = True
        refusal = audit.placed(known.raced, known.place, place) if are_alike else ""
        if refusal:
            raise NeedsValue("second-race", refusal)

    def formula(self, place_of: Callable[[Known], int]) -> Formula:
        """Return the uniform as a formula with its index, ``place_of(known)``, where ``known`` are its constraints."""
        return Formula("uniform", (place_of(self.known),))

    def _below_together(self, together: Together, bound: float, place: str) -> bool:
        chance = together.chance(self, bound, or_equal=False)
        drawn = 0 < chance.middle < 1
        refusal = chance.refusal or audit.asked_together((self.draw.name,), (), others=True, drawn=drawn, place=place)
        if refusal:
            raise NeedsValue("compared-in-two-ways", refusal)
        rounding.known_within(chance.within)
        constraint = self._cells((bound,))._replace(within=chance.within)
        return self.coin(chance.middle, lambda u: int(u >= bound), constraint) if drawn else chance.middle == 1

    def coin(self, chance: float, lies: Callable[[float], int], constraint: Constraint) -> bool:
        """Return the result of a comparison, drawn: True with probability ``chance``.

        ``lies(u)`` is 0 if the comparison is true for the value u of the uniform, else 1. ``constraint`` states which
        uniforms the result constrains, and at which values the result changes.
        """
        return self._ask(TOGETHER, array([chance, 1 - chance]), lies, constraint) == 0

    def _cells(self, bounds: Sequence[float]) -> Constraint:
        """Return the constraint that a comparison with ``bounds`` sets on this uniform.

        The bounds divide the interval in which the uniform is known to lie; the constraint has the ends of these parts.
        """
        low, high = self.known.low, self.known.high
        return Constraint((self.known,), (low, *(min(max(bound, low), high) for bound in bounds), high))

    def _ask(self, question: str, pmf: Any, lies: Callable[[float], int], constraint: Constraint) -> int:
        """Return the result of a comparison as an index, drawn from ``pmf``.

        The index is that of the interval in which the uniform lies; for several numbers it is 0 for true and 1 for
        false. ``lies(u)`` is the index for a value u. ``constraint`` states which uniforms the result constrains, and
        where it changes. ``question`` names the kind of comparison in the site of the draw.
        """
        known, coupled = self.known, mode().coupled
        known.asked += 1
        rounding.count_comparison(again=known.asked > 1)
        if coupled is not None:
            return int(coupled.cell(self, pmf, lies))
        site = (*known.site, question, known.asked)
        note_constraint(site, constraint)
        return self.draws.categorical(pmf, site)


def _only_interval(bounds: Sequence[float], known: Known) -> int | None:
    """Return how many of ``bounds`` are at or below a uniform if its interval in ``known`` determines it, else None.

    None also if the bounds are not sorted, or if one is NaN.
    """
    result = bisect_right(bounds, known.low)
    is_only = result == len(bounds) or bounds[result] >= known.high
    return result if is_only and all(map(le, bounds, [*bounds[1:], inf])) else None


def look_up(draws: Draws, pmf: Any, site: Site, draw: Draw) -> int:
    """Return the outcome of ``draw``, an inverse-CDF lookup of one number in the cumulative sum of ``pmf``.

    ``draws`` chooses the outcome at ``site``. The outcome also constrains the other draws that use this number, and
    their earlier outcomes constrain it. Raises ``NeedsValue`` if the number has raced or was compared together with
    others.
    """
    assert draw.origin is not None
    known: Known | None = draw.origin.shared.get(draw.source)
    if known is None and draw.source not in draw.origin.lookups:
        outcome = draws.categorical(pmf, site)
        draw.origin.lookups[draw.source] = [(pmf, outcome)]
        return outcome
    if known is not None and (known.together or known.raced):
        raise NeedsValue("one-state-twice", f"{draw.name} looks up a number that was compared in another way")
    low, high = _looked_up_interval(draw) if known is None else (known.low, known.high)
    edges = _edges(pmf).clip(low, high)
    masses = np.diff(edges)
    masses[masses < NEVER_DRAWN * (high - low)] = 0.0
    rounding.count_comparison(again=True)
    outcome = draws.categorical(masses / masses.sum(), site)
    draw.origin.lookups.setdefault(draw.source, []).append((pmf, outcome))
    if known is not None:
        known.low, known.high = float(edges[outcome]), float(edges[outcome + 1])
    return outcome


def _looked_up_interval(draw: Draw) -> tuple[float, float]:
    """Return the interval [low, high) to which lookups by other draws confine the number of ``draw``."""
    low, high = 0.0, 1.0
    for pmf, outcome in draw.origin.lookups.get(draw.source, ()) if draw.origin is not None else ():
        edges = _edges(pmf)
        low, high = max(low, float(edges[outcome])), min(high, float(edges[outcome + 1]))
    return low, high


def _edges(pmf: Any) -> Any:
    """Return the ends of the intervals of the outcomes: 0, the partial sums of ``pmf``, and 1 at last."""
    sums = np.cumsum(np.asarray(pmf, dtype=np.float64))
    return np.concatenate([[0.0], sums[:-1] / sums[-1], [1.0]])


def law_of_second(before: Sequence[float], after: Sequence[float], total: float, first: int | None) -> Any:
    """Return the probability that each clock rings first in a second race of the same noise, an array ``[clocks]``.

    A clock is an exponential number ``noise / rate``; the smallest one rings first. The second race has other rates.

    Args:
        before: Rates of these clocks in the first race (0: took no part).
        after: Their rates in the second race, all positive.
        total: Sum of all rates of the first race, also of clocks that are not in the second.
        first: Index of the clock that rang first in the first race; None if it is not in the second.
    """
    starts = [rate / again for rate, again in zip(before, after, strict=True)]
    end = inf if first is None else starts[first]
    others = [place for place in range(len(starts)) if place != first and starts[place] < end]
    moments = [*sorted({starts[place] for place in others}), end]
    masses, waited = [0.0] * len(starts), total
    for begin, over in pairwise(moments):
        running = [place for place in others if starts[place] <= begin]
        slope = sum(after[place] for place in running)
        later = waited + slope * (over - begin)
        share = total / (slope * waited) if over == inf else total * (over - begin) / (waited * later)
        for place in running:
            masses[place] += after[place] * share
        waited = later
    if first is not None:
        masses[first] = total / waited
    return array(masses)


def race_again(draws: Draws, pmf: Any, site: Site, draw: Draw) -> int:
    """Return the outcome of ``draw``: the index of the smallest ``noise / pmf``. ``draws`` draws it at ``site``.

    Other draws from the same generator state race the same noise at other rates; their winners determine the law. An
    example is ``torch.multinomial`` with a generator that is seeded again. Raises ``NeedsValue`` for a third race, if
    more than two clocks take part in all of them.
    """
    assert draw.origin is not None
    if np.count_nonzero(pmf) == 1:  # it is first whatever the noise is
        return draws.categorical(pmf, site)
    earlier = draw.origin.lookups.setdefault(draw.source, [])
    if not earlier:
        earlier.append((pmf, draws.categorical(pmf, site)))
        return earlier[0][1]
    law = law_of_winner_given(earlier, pmf)
    if law is None:
        raise NeedsValue("one-state-twice", f"{draw.name} draws three times from one state of its generator")
    rounding.count_comparison(again=True)
    law = np.where(law < NEVER_DRAWN, 0.0, law)
    outcome = draws.categorical(law / law.sum(), site)
    earlier.append((pmf, outcome))
    return outcome


def law_of_winner_given(earlier: Sequence[tuple[Any, int]], rates: Any) -> Any:
    """Return the law of the winner of a race whose noise has already decided other races.

    It is the probability that each exponential clock rings first in a race at ``rates``, an array ``[clocks]``; None if
    it is not known. ``earlier`` are the other races, at least one: pairs (rates, index of the first clock).
    """
    taking_part = np.flatnonzero(np.any([rates, *(before for before, _ in earlier)], axis=0))
    if len(taking_part) <= 2:
        return _law_of_two(earlier, rates, taking_part)
    if len(earlier) > 1:
        return None
    ((before, first),) = earlier
    again = np.flatnonzero(rates)
    place = int(np.flatnonzero(again == first)[0]) if rates[first] > 0 else None
    law = np.zeros(len(rates))
    law[again] = law_of_second(before[again].tolist(), rates[again].tolist(), float(before.sum()), place)
    return law


def _law_of_two(earlier: Sequence[tuple[Any, int]], rates: Any, clocks: Any) -> Any:
    """Return the probability that each of at most two ``clocks`` rings first, as ``law_of_winner_given`` does.

    ``earlier`` and ``rates`` are as in that function.
    """
    one, low, high = clocks[0], 0.0, 1.0
    for before, first in earlier:
        share = float(before[one] / before.sum())
        low, high = (low, min(high, share)) if first == one else (max(low, share), high)
    share = min(max(float(rates[one] / rates.sum()), low), high)
    law = np.zeros(len(rates))
    law[clocks[-1]] = (high - share) / (high - low)
    law[one] = 1.0 - law[clocks[-1]] if len(clocks) == 1 else (share - low) / (high - low)
    return law


def look(draw: Draw) -> None:
    """Record that the program reads ``draw``.

    Raises ``NeedsValue`` if ``draw`` shares a generator state with a draw that the program has already read, and the
    two draws use different numbers of that generator: how they depend on each other is then unknown.
    """
    refusal = draw.look()
    if refusal:
        raise NeedsValue("one-state-twice", refusal)


def refusal(code: str, reason: str, operation: str = "") -> NeedsValue:
    """Return a refusal for ``reason``, a sentence, with the current line of the foreign code.

    ``code`` is the key of the kind of refusal in ``REASONS``. ``operation`` is the operation of the user's library; ""
    if the caller adds it later.
    """
    return NeedsValue(code, reason, operation).at(caller())
