"""Large-vocabulary mode: outcomes, lookups and races with very many possible values, held as vectors.

Enumerating every outcome of a draw over a real vocabulary would take too many runs. In this mode a draw stays symbolic
until the end of a call. Comparing, selecting, shifting, looking up in a table and converting are computed for all its
outcomes at once, and its law is read at the end as one vector. If the program needs the value, one of the outcomes is
drawn. Outside ``at_large`` every outcome is enumerated.

``lookup`` is an inverse CDF as one symbolic draw: how many bounds are at or below a uniform. ``Crossing`` is the
comparison of a uniform with all bounds, an array of bools that one draw determines; the sum of the array, or the
position of its first True, is the same draw as ``lookup``.

The law of the argmax of very many random scores is one vector, computed as the law of the first of very many
exponential clocks (``races``). A clock may start late, end early, or ring at one time with positive probability. Clocks
are then sorted by these times, and the probability that no clock has rung until a time is a running product. In the
docstrings of this module, E is an exponential number of rate 1, u a uniform number, w the weight of a score, and a the
logarithm of w.

Limits on the number of random numbers, or outcomes, of one call are checked before an array of that size is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.audit import Draw, Raced, place
from specverify.intercept.refusals import NeedsValue, RuleDeclined, tried
from specverify.intercept.run import mode, mode_with
from specverify.intercept.symbolic import vectors
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.deferred import Deferred, chosen, known
from specverify.intercept.symbolic.steps import LOG, power, times
from specverify.intercept.symbolic.uniform import Known, Uniform, look, refusal
from specverify.intercept.symbolic.vectors import LOGS, Many, Steps, back
from specverify.laws import rounding
from specverify.laws.call_paths import FEW
from specverify.reference import Draws, Site

# Wide


MANY = 256
"""More random numbers than this are stored in arrays instead of objects."""


@contextmanager
def at_large(*, short: bool = False) -> Iterator[None]:
    """Context manager in which large-vocabulary mode is active.

    In this mode, arrays of a vocabulary of real size are computed as whole vectors instead of element by element.
    ``short`` states that the rows of p and q are 16-bit floats.
    """
    with mode_with(large=True, short=short):
        yield


def large(count: int, few: int = FEW) -> bool:
    """Return whether a draw with ``count`` outcomes is computed as one vector; if not, its outcomes are enumerated.

    It is computed as one vector in large-vocabulary mode if ``count`` is above ``few``.
    """
    return mode().large and count > few


def at_large_now() -> bool:
    """Return whether large-vocabulary mode is active."""
    return mode().large


def continuous_in_16_bits() -> bool:
    """Return whether 16-bit random numbers are treated as continuous.

    This is so in large-vocabulary mode if the rows of p and q are 16-bit floats too: the law of such a call is computed
    as if its random numbers were continuous.
    """
    now = mode()
    return now.large and now.short


class DrawAmongMany:
    """One draw with very many outcomes, such as a token of a real vocabulary, and the set of those still possible.

    Each comparison of the outcome with a number reduces the set; the outcome itself is drawn only when it is read.
    """

    def __init__(
        self,
        draws: Draws,
        site: Site,
        draw: Draw,
        law: Callable[[], Any],
        settle: Callable[[int | None], None] = lambda outcome: None,
        *,
        recorded: Callable[[Any, Any], int],
    ) -> None:
        """Store the draw named ``site``; ``draws`` chooses its outcome.

        Args:
            draws: The source of draws.
            site: Name of the draw.
            draw: Record of the generator state.
            law: ``law()`` returns the pmf ``[outcomes]``.
            settle: Called with the outcome when the program reads it. Called with None when the program compares it or
            uses it as an index without reading it.
            recorded: ``recorded(coupled, pmf)`` returns the outcome if ``coupled`` repeats a plain run, in which the
                library has drawn it.
        """
        self._draws, self._site, self._draw, self._settle = draws, site, draw, settle
        self._law, self._asked, self._recorded = law, 0, recorded
        self._came: int | None = None
        self._left: Any = None
        self.outcome: int | None = None

    def masses(self) -> Any:
        """Return the probability of each outcome, an array ``[outcomes]``, given the comparisons so far."""
        if self._left is None:
            look(self._draw)
            self._left = np.asarray(self._law(), dtype=np.float64)
            coupled = mode().coupled
            self._came = None if coupled is None else int(self._recorded(coupled, self._left))
            self._settle(None)
            rounding.drew(int(np.count_nonzero(self._left)))
        return self._left

    def among(self, outcomes: Any) -> bool:
        """Return whether the outcome is one of those that are True in ``outcomes``, an array of bools ``[outcomes]``.

        The result is drawn as a coin unless earlier comparisons determine it.
        """
        left = self.masses()
        inside = float(left[outcomes].sum())
        if self.outcome is not None or not inside > 0 or not left[~outcomes].any():
            return bool(inside > 0)
        self._asked += 1
        if self._came is None:
            heads = np.array([inside, max(1.0 - inside, 0.0)])
            result = self._draws.categorical(heads / heads.sum(), (*self._site, "asked", self._asked)) == 0
        else:
            result = bool(outcomes[mode().coupled.among(self, left, self._came, self._draw.name, outcomes)])
        kept = np.where(outcomes if result else ~outcomes, left, 0.0)
        self._left = kept / kept.sum()
        return bool(result)

    def value(self) -> int:
        """Return the outcome, an index, drawn among those that are still possible."""
        if self.outcome is None:
            masses = self.masses()
            if self._came is None:
                self.outcome = self._draws.categorical(masses, self._site)
            else:
                self.outcome = int(mode().coupled.among(self, masses, self._came, self._draw.name))
            self._settle(self.outcome)
            self._left = np.zeros_like(self.masses())
            self._left[self.outcome] = 1.0
        return self.outcome


class Wide(Deferred):
    """A number that is a function of one draw with very many outcomes; it stays symbolic until it is read."""

    def __init__(self, drawn: DrawAmongMany, values: Any) -> None:
        """Store the draw ``drawn``, and ``values``, an array ``[outcomes]`` with the number for each outcome."""
        self.drawn, self.values = drawn, values
        super().__init__(lambda: values[drawn.value()].item())  # noqa: PLW0108 - it is drawn later

    @property
    def decided(self) -> bool:
        """Return whether the program has read the draw, so that the number has a value."""
        return self.drawn.outcome is not None

    def holds(self, question: Callable[[Any], Any]) -> bool:
        """Return whether ``question`` is true of the number, for example whether it is below 5.

        ``question`` maps an array of possible values to bools, such as ``lambda values: values < 5``. The result is
        drawn with the probability of the values for which it is true, unless earlier results determine it.
        """
        return self.drawn.among(np.asarray(question(self.values), dtype=bool))

    def mapped(self, function: Callable[[Any], Any]) -> Wide:
        """Return ``function`` of the number, still symbolic; ``function`` maps an array of values to an array."""
        return Wide(self.drawn, np.asarray(function(self.values)))


def resolved(element: Any) -> Any:
    """Return the value of ``element``, drawn now, unless it is an outcome with very many possible values.

    Such an outcome is returned unread.
    """
    result = chosen(element)
    return result if isinstance(result, Wide) and not result.decided else known(result)


# Lookups


def goes_in_arrays(value: Any) -> bool:
    """Return whether ``value`` is a symbolic number with a continuous law: no value has a positive probability.

    Such a number can be compared with all bounds of a large vocabulary by one draw.
    """
    return isinstance(value, Continuous) and not value.clamped and not value.in_steps


def lookup(value: Continuous, bounds: Any) -> DrawAmongMany:
    """Return the draw whose outcome is the number of ``bounds`` at or below ``value``: an inverse-CDF lookup.

    ``bounds`` is a non-decreasing array. Raises ``RuleDeclined`` if ``value`` has values of positive probability, and
    ``NeedsValue`` for bounds that are not sorted.
    """
    if not goes_in_arrays(value):
        raise RuleDeclined(
            "a number that is clamped, has steps or is made of others is looked up among very many bounds"
        )
    result, where = np.asarray(bounds, dtype=np.float64), place()
    if (np.diff(result) < 0).any() or np.isnan(result).any():
        raise NeedsValue("unsorted-bounds", "a random number is looked up in bounds that are not sorted")
    with np.errstate(all="ignore"):
        for step in reversed(value.steps):
            result = back(Steps(*step), result)
    uniform = value.uniform

    def law() -> Any:
        known = uniform.known
        if known.raced or known.together:
            raise NeedsValue("second-race", "a random number is looked up after a race, or after another lookup")
        ordered = result if value.increasing else result[::-1]
        edges = np.concatenate([[known.low], np.clip(ordered, known.low, known.high), [known.high]])
        masses = np.diff(edges) / (known.high - known.low)
        rounding.looked_up(int(np.count_nonzero(masses)))
        return masses if value.increasing else masses[::-1]

    def settle(_: int | None) -> None:
        if not uniform.known.raced:
            uniform.known.raced = Raced(where, 0.0)

    def recorded(coupled: Any, masses: Any) -> int:
        return int(coupled.looked_up(value, np.asarray(bounds, dtype=np.float64), masses))

    site = (*uniform.known.site, "among", len(result))
    return DrawAmongMany(uniform.draws, site, uniform.draw, law, settle, recorded=recorded)


class Crossing(NamedTuple):
    """An array of symbolic bools of the given ``shape``: comparisons of symbolic numbers with very many bounds.

    Each row compares one symbolic number with its bounds, by one draw.
    """

    lookups: tuple[DrawAmongMany, ...]
    """One lookup for each row."""
    ranks: Any
    """``[rows, bounds]``: rank of each bound among the bounds of its row."""
    shape: tuple[int, ...]
    above: bool
    """True if the comparison is ``number >= bound``, False if ``number < bound``."""

    def elements(self) -> Any:
        """Return all bools as an object array of 0 and 1; this makes the draw of each row."""
        below = self.ranks < np.array([drawn.value() for drawn in self.lookups])[:, None]
        return (below == self.above).astype(int).astype(object).reshape(self.shape)

    def turned(self) -> Crossing:
        """Return the negations of all bools, as another ``Crossing``; nothing is drawn."""
        return self._replace(above=not self.above)

    def totals(self) -> list[Wide]:
        """Return, for each row, how many of its bools are True, as a symbolic number."""
        count = self.ranks.shape[1]
        numbers = np.arange(count + 1) if self.above else count - np.arange(count + 1)
        return [Wide(drawn, numbers) for drawn in self.lookups]

    def firsts(self) -> list[Wide]:
        """Return, for each row, the index of the first True, as a symbolic number; 0 if there is none."""
        return [
            Wide(drawn, _firsts(ranks, above=self.above)) for drawn, ranks in zip(self.lookups, self.ranks, strict=True)
        ]


def crossing(values: list[Continuous], bounds: Any, shape: tuple[int, ...], *, above: bool) -> Crossing:
    """Compare each number of ``values`` with its row of ``bounds`` ``[rows, bounds]``; return symbolic bools.

    With ``above`` a bool is True if the number is at or above the bound, otherwise if it is below. ``shape`` is that of
    the result.
    """
    order = np.argsort(bounds, axis=-1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), -1)
    rows = np.take_along_axis(np.asarray(bounds, dtype=np.float64), order, -1)
    return Crossing(tuple(lookup(value, row) for value, row in zip(values, rows, strict=True)), ranks, shape, above)


def _firsts(ranks: Any, *, above: bool) -> Any:
    """Return a table: the index of the first True in a row of comparisons, for each result that the row may have.

    A row compares one number with n bounds. Entry k is for the result that k bounds are at or below the number, so the
    table has n + 1 entries. An entry is 0 if no comparison is True. ``ranks`` are the ranks of the bounds in the row.
    With ``above`` a comparison is True if the number is at or above its bound, otherwise if it is below.
    """
    order = np.argsort(ranks, kind="stable")
    if above:
        return np.concatenate([[0], np.minimum.accumulate(order)])
    return np.concatenate([np.minimum.accumulate(order[::-1])[::-1], [0]])


# Sizes


MOST_NUMBERS = 1_000_000
"""Limit of random numbers of one call that are stored as objects, and of outcomes expanded to an array."""
MOST_AT_LARGE = 50_000_000
"""The same limit in large-vocabulary mode, where arrays of floats store them."""


def most() -> int:
    """Return the largest number of random numbers that one call may draw in the current mode."""
    return MOST_AT_LARGE if at_large_now() else MOST_NUMBERS


def check_numbers(call: str, size: Any) -> None:
    """Raise ``NeedsValue`` if one call draws more random numbers than the current mode permits (``most``).

    ``call`` is its name for the message. ``size`` is how many numbers it draws: a number, a shape, or None for one.
    """
    count = 1 if size is None else math.prod(_lengths(size))
    if count > most():
        raise refusal(
            "too-many-numbers", f"{call} draws {count} random numbers, and no more than {most()} are followed"
        )


def check_outcomes(call: str, number: int) -> None:
    """Raise ``NeedsValue`` if ``number``, the number of outcomes of a draw, is above the current limit (``most``).

    ``call`` is the name of the drawing call for the message.
    """
    if number > most():
        raise refusal("too-many-outcomes", f"{call} has {number} outcomes, more than can be enumerated")


def _lengths(size: Any) -> Iterable[int]:
    """Return ``size``, a shape or a single number, as a list of integers.

    Entries that are no integers are left out, because the library rejects them.
    """
    lengths = size if isinstance(size, Iterable) else (size,)
    return [int(length) for length in lengths if isinstance(length, int | np.integer)]


# Races

_FAR = 700.0
"""Logarithm of the ratio of two rates above which the slower clock does not win, as in ``races``."""
_NOTHING = -800.0
"""Stands for the logarithm of a probability that is 0 in floats."""


class Clocks(NamedTuple):
    """Exponential clocks, each field an array ``[clocks]``.

    Clock j rings at an exponential time of rate ``rate[j]`` after ``start[j]``, and at ``end[j]`` at the latest.
    ``at_once[j]`` is the probability that it rings exactly at ``start[j]``. ``races.Clock`` is the same for one clock.
    """

    rate: Any
    start: Any
    at_once: Any
    end: Any


class VectorRace:
    """A race among very many elements of a row: which is the largest (or smallest); of equal ones, the first wins.

    The law of the winner is one vector, and the winner stays symbolic until the program reads it.
    """

    def __init__(self, scores: Many, *, largest: bool) -> None:
        """Store the race for the largest (or smallest) of ``scores``, a row of numbers and symbolic numbers."""
        self._scores, self._used = scores if largest else vectors.negative(scores), False
        self._sign = 1.0 if largest else -1.0
        self._random = bool(scores.random.any())
        if self._random:
            first = int(scores.ids[scores.random][0])
            self.block = next(each for each in scores.blocks if 0 <= first - each.known.first < each.size)
            self.site = ("race", *self.block.site, first - self.block.known.first)

    def use(self) -> None:
        """Record that the random numbers of the row have decided a race. The second and later calls do nothing.

        Raises ``NeedsValue`` if one of the numbers had decided another race or comparison before.
        """
        if not self._used:
            self._scores.look()
            check_unused(self._scores)
            use_up(self._scores)
        self._used = True

    def clocks(self) -> Clocks:
        """Return an exponential clock for each score; they ring in the order of the scores, the largest first.

        Raises ``NeedsValue`` if the scores are not functions of exponential times.
        """
        return _clocks(self._scores)

    def law(self) -> Any:
        """Return the probability that each element wins, an array ``[elements]``."""
        self.use()
        pmf = law_of(self.clocks())
        if not abs(pmf.sum() - 1) < 1e-6:
            raise NeedsValue(
                "not-a-race", "the maximum of several random numbers is requested, and they are not a race of clocks"
            )
        return pmf / pmf.sum()

    def winner(self) -> Wide | int:
        """Return the index of the winner: a symbolic number, or an ``int`` if no element is random."""
        if not self._random:
            return int(np.argmax(self._scores.numbers))

        def recorded(coupled: Any, _: Any) -> int:
            return int(coupled.largest_of_many(self._scores))

        drawn = DrawAmongMany(self.block.draws, self.site, self.block.draw, self.law, recorded=recorded)
        return Wide(drawn, np.arange(len(self._scores.ids)))

    def recorded_best(self, coupled: Any) -> float:
        """Return a value for the uniform from which ``best`` computes the largest element.

        ``coupled`` repeats a recorded run of the unchanged program. The value is the probability that no clock of the
        race rings before the first ring of that run.
        """
        return float(coupled.best_of_many(self._scores, self.clocks().rate))

    def best(self) -> Continuous | float:
        """Return the largest (or smallest) element as a symbolic number, or as a plain one if no element is random.

        The value of this element is independent of its index. Raises ``NeedsValue`` if the exponential clock of an
        element does not start at 0 or has a latest time, as after an addition or a clamp.
        """
        if not self._random:
            return float(self._sign * self._scores.numbers.max())
        clocks, place = self.clocks(), int(self._scores.random.argmax())
        first = self._scores.element(place)
        plain = not clocks.start[self._scores.random].any() and not clocks.at_once.any() and np.isinf(clocks.end).all()
        if not plain or first.steps[:1] != (LOG,):
            raise NeedsValue(
                "order-alone-is-known",
                "the value of the largest of several random numbers is needed, not only which it is",
            )
        result = Continuous(Uniform(self.block.draws, ("best", *self.site), _Best(self)))
        for step in (power(float(clocks.rate[place] / clocks.rate.sum())), *first.steps):
            result = result.then(step)
        return result if self._sign > 0 else result.then(times(-1.0))


class _Best(Draw):
    """The draw of the value of the largest (or smallest) number of a race.

    After the program has read this value, the random numbers of the race cannot decide anything else: a later use is
    refused.
    """

    __slots__ = ("race",)

    def __init__(self, race: VectorRace) -> None:
        super().__init__(race.site)
        self.race = race

    def look(self) -> str:
        self.race.use()
        return ""

    def recorded(self, coupled: Any) -> float:
        """Return the value of this draw's uniform in the run of the unchanged program that ``coupled`` repeats.

        See ``VectorRace.recorded_best``.
        """
        return self.race.recorded_best(coupled)


def check_unused(scores: Many) -> None:
    """Raise ``NeedsValue`` if a random number of the row ``scores`` was used before, or occurs twice in the row.

    A use is a race or a comparison.
    """
    ids = scores.ids[scores.random]
    for block in scores.blocks:
        known = block.known
        places = ids[(ids >= known.first) & (ids < known.first + block.size)] - known.first
        single = [known.single[place] for place in known.single.keys() & set(places[: len(known.single)].tolist())] \
            if known.single else []  # fmt: skip
        if known.raced[places].any() or any(map(_used, single)):
            raise NeedsValue(
                "second-race", "random noise is used in a second race, or after it was compared with a number"
            )
        if len(places) > 1 and not (np.diff(places) > 0).all() and len(np.unique(places)) < len(places):
            raise NeedsValue(
                "compared-in-two-ways",
                "the maximum of several random numbers is requested, and one number is the noise of two entries",
            )


def _used(known: Known) -> bool:
    return bool(known.raced or known.together or known.low > 0 or known.high < 1)


def use_up(scores: Many) -> None:
    """Record that the noise of the row ``scores`` has decided a race, so that it cannot decide anything else."""
    ids = scores.ids[scores.random]
    for block in scores.blocks:
        first = block.known.first
        block.known.raced[ids[(ids >= first) & (ids < first + block.size)] - first] = True


class FirstTrue(NamedTuple):
    """The argmax of a row of very many symbolic bools, which is the index of the first True.

    ``place`` is this symbolic index; it is 0 if no bool is True.
    """

    place: Wide

    def winner(self) -> Wide:
        """Return the index of the first True, symbolic; 0 if there is none."""
        return self.place

    def best(self) -> Any:
        """Raise ``RuleDeclined``: whether any of very many symbolic bools is True has no rule."""
        raise RuleDeclined("there is no rule for the maximum of very many bools, only for its index")


# Rules of rows


def contests(content: Many | Crossing, *, largest: bool) -> list[VectorRace] | list[FirstTrue]:
    """Return, for each row along the last axis of ``content``, the race for its largest (or smallest) element.

    For a ``Crossing``, whose rows are symbolic bools, the largest element is the first True. Raises ``RuleDeclined``
    for its smallest element.
    """
    if isinstance(content, Many):
        return [VectorRace(row, largest=largest) for row in rows_of(content)]
    if not largest:
        raise RuleDeclined("there is no rule for the first False of very many bools")
    return [FirstTrue(place) for place in content.firsts()]


def totals(content: Many | Crossing) -> list[Wide]:
    """Return, for each row along the last axis of ``content``, how many of its bools are True, as a symbolic number.

    Raises ``RuleDeclined`` for a noise vector.
    """
    if isinstance(content, Many):
        raise RuleDeclined("noise vectors are added up")
    return content.totals()


def rows_of(content: Many) -> list[Many]:
    """Return the rows of ``content``, a noise vector, along its last axis."""
    flat = content.taken(lambda array: array.reshape(-1, array.shape[-1]))
    return [flat.taken(lambda array, row=row: array[row]) for row in range(flat.shape[0])]  # type: ignore[misc]


# From scores to clocks


def _clocks(scores: Many) -> Clocks:
    stripped = _stripped(scores)
    shift = _largest_summand(stripped)
    for to_time in (_of_ratio, _of_multiple, _of_power, lambda each: _of_sum(each, shift)):
        try:
            with tried(), np.errstate(all="ignore"):
                result = _in_time(to_time(stripped))
        except (RuleDeclined, NeedsValue):
            continue
        if result is not None and (result.rate > 0).any():
            return result
    raise NeedsValue(
        "not-a-race", "the maximum of several random numbers is requested, and they are not a race of clocks"
    )


def _stripped(scores: Many) -> Many:
    """Return simpler scores in the same order: ``scores`` without their last steps, as far as these can be removed.

    A last step is removed if it is increasing and the same for all scores.
    """
    last = scores.steps[-1] if scores.steps else None
    if last is None or np.ndim(last.number) or (last.name in {"times", "power"} and last.number <= 0):
        return scores
    if len(scores.steps) == 2 and _mirrored(scores.steps):
        return scores
    with np.errstate(all="ignore"):
        low, high, numbers = (back(last, np.asarray(each)) for each in (scores.low, scores.high, scores.numbers))
    return _stripped(scores._replace(steps=scores.steps[:-1], low=low, high=high, numbers=numbers))


def _mirrored(steps: Sequence[Steps]) -> bool:
    """Return whether ``steps``, the functions applied to a uniform u, begin with the two steps that map u to 1 - u.

    The caller can then leave these two steps out, because 1 - u is uniform too.
    """
    names = [step.name for step in steps[:2]]
    return names == ["times", "plus"] and bool(np.all(steps[0].number == -1) and np.all(steps[1].number == 1))


def _in_time(times: Many) -> Clocks | None:
    """Return the exponential clocks whose ring times are ``times``; None if one of the times has another form.

    A time has the form ``r E + s`` with E exponential of rate 1, possibly clamped, or is infinite (the clock never
    rings).
    """
    exponent = next((step.number for step in times.steps if step.name == "power"), 1.0)
    if np.ndim(exponent) or not exponent > 0:
        return None
    if exponent != 1:
        times = times.then(Steps("power", 1 / exponent))
    if not (times.numbers[~times.random] == np.inf).all():
        return None
    steps = times.steps
    if _mirrored(steps):
        steps = steps[2:]
    names = [step.name for step in steps]
    if steps[:1] != (LOGS,) or names[1:] not in (["times"], ["times", "plus"]):
        return None
    factor = np.broadcast_to(steps[1].number, times.shape)
    if (factor[times.random] > 0).any():
        return None
    begin = np.broadcast_to(steps[2].number if len(steps) > 2 else 0.0, times.shape)
    rate = np.where(times.random, -1 / factor, 0.0)
    with np.errstate(all="ignore"):
        at_once = np.where(times.low > begin, -np.expm1(-rate * (times.low - begin)), 0.0)
    start = np.where(times.random, np.maximum(begin, times.low), np.inf)
    return Clocks(rate, start, at_once, np.where(times.random, times.high, np.inf))


def _of_ratio(scores: Many) -> Many:
    """Convert scores of the form ``w / E`` to times ``E / w``, their reciprocals: the largest score is the first time.

    E is an exponential number and w a weight. A plain number must be at most 0; its time is infinity. Raises
    ``RuleDeclined`` for a larger one, and for symbolic scores that may be negative.
    """
    if not (np.all(scores.ends()[0] >= 0) and (scores.numbers[~scores.random] <= 0).all()):
        raise RuleDeclined("the scores are no ratios of positive numbers")
    return vectors.reciprocal(scores)._replace(numbers=np.full(scores.shape, np.inf))


def _of_multiple(scores: Many) -> Many:
    """Convert scores of the form ``-E / w`` to times ``E / w``, their negatives: the largest score is the first time.

    E is an exponential number and w a weight.
    """
    return vectors.negative(scores)


def _of_power(scores: Many) -> Many:
    """Convert scores of the form ``u ** (1 / w)`` to times ``E / w``: the largest score is the first time.

    u is uniform, w a weight, and ``E = -log u``, so the score is ``exp(-E / w)``. A plain number must be at most 0; its
    time is infinity. Raises ``RuleDeclined`` for a larger one.
    """
    if not (scores.numbers[~scores.random] <= 0).all():
        raise RuleDeclined("a number beside the powers of uniforms is above 0")
    result = vectors.negative(vectors.log(scores))
    return result._replace(numbers=np.full(scores.shape, np.inf))


def _of_sum(scores: Many, shift: float) -> Many:
    """Convert scores of the form ``a - log E`` to times ``E / exp(a)``: the largest score is the first time.

    E is an exponential number, so ``-log E`` is Gumbel noise. ``shift``, the largest a, is subtracted from every a to
    avoid overflow. A score far below ``shift`` has the time infinity. Raises ``RuleDeclined`` for a plain number that
    is not far below.
    """
    last = scores.steps[-1:]
    summands = np.broadcast_to(last[0].number if last and last[0].name == "plus" else 0.0, scores.shape)
    far = summands < shift - _FAR
    if not (scores.numbers[~scores.random] < shift - _FAR).all():
        raise RuleDeclined("a number beside the sums is not far below them")
    near = scores._replace(ids=np.where(far, -1, scores.ids), numbers=np.full(scores.shape, np.inf))
    base = near.then(Steps("plus", np.where(far, 0.0, -summands)))
    result = vectors.exp(vectors.negative(base)).then(Steps("times", np.where(far, 1.0, np.exp(shift - summands))))
    return result._replace(numbers=np.full(scores.shape, np.inf))


def _largest_summand(scores: Many) -> float:
    last = scores.steps[-1:]
    if not last or last[0].name != "plus":
        return 0.0
    return float(np.broadcast_to(last[0].number, scores.shape)[scores.random].max())


# From clocks to a law


def law_of(clocks: Clocks) -> Any:
    """Return the probability that each clock rings first.

    If several clocks ring at the same time, the first of them in the row wins.
    """
    rate, start, at_once, end = (np.asarray(each, dtype=np.float64) for each in clocks)
    over = float(end.min())
    moments = np.unique(np.concatenate([start[start < over], [over] if over < np.inf else []]))
    where = np.searchsorted(moments, start)
    if len(moments) == 1 and over == np.inf and not at_once.any():
        return rate / rate.sum()
    return _with_moments(Clocks(rate, start, at_once, end), moments, where)


def _with_moments(clocks: Clocks, moments: Any, where: Any) -> Any:
    """Return the probability that each of ``clocks`` rings first, an array ``[clocks]``.

    Let e be the earliest ``end`` of a clock. ``moments`` are the different start times below e, in increasing order,
    and then e if it is finite. Clock i starts at ``moments[where[i]]``, or takes no part if it starts at e or later.
    """
    rate, _, at_once, end = clocks
    over, size = float(end.min()), len(moments)
    begun = where < size - (over < np.inf)
    running = np.cumsum(np.bincount(where[begun], rate[begun], minlength=size))  # from each moment to the next
    waits = np.append(np.diff(moments), np.inf if over == np.inf else 0.0)
    with np.errstate(divide="ignore"):
        spared = np.where(begun, np.maximum(np.log1p(-at_once), _NOTHING), 0.0)
    order = np.lexsort((np.arange(len(rate)), where))
    order = order[begun[order]]
    atoms = np.bincount(where[begun], spared[begun], minlength=size)
    with np.errstate(invalid="ignore"):
        ticks = np.where(running > 0, running * waits, 0.0)
    before = np.concatenate([[0.0], np.cumsum(atoms + -ticks)[:-1]])  # log of what is left just before each moment
    after = np.exp(before + atoms)
    rings = np.where(running > 0, after * -np.expm1(-ticks) / np.where(running > 0, running, 1.0), 0.0)
    later = np.cumsum(rings[::-1])[::-1]
    pmf = np.where(begun, rate * later[np.minimum(where, size - 1)], 0.0)
    earlier = np.cumsum(spared[order]) - spared[order]
    at_start = np.concatenate([[0.0], np.cumsum(atoms)[:-1]])
    pmf[order] += at_once[order] * np.exp(before[where[order]] + earlier - at_start[where[order]])
    if over < np.inf:
        pmf[int((end == over).argmax())] += float(np.exp(before[-1]))
    return pmf
