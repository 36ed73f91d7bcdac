"""Races: the argmax, or the sorted order, of several random numbers, computed by exponential clocks.

**Clocks.** An exponential clock rings at an exponential time E = -log u, or -log(1 - u), for a uniform u. Each number
must have its own clock, and all numbers must be the same decreasing (or increasing) function of their ring times. Then
the first clock gives the largest (or smallest) number. Gumbel noise, weights over exponentials and powers of uniforms
have this form. In general a ring time is ``r E + s`` between an earliest and a latest time, where the uniform may be
restricted to an interval. A clock rings later than t with probability ``c exp(-t/r) + d``. Without clamps and summands
the clock of rate 1/r is first with probability proportional to its rate. A small number added to the noise delays a
clock, a clamp gives one time a positive probability, and a number added to the uniform shortens the tail; the law is
exact in these cases too.

**Scores.** Numbers may be ratios, multiples, powers or sums of the noise; each form is inverted to obtain the times.
Below, E is an exponential number of rate 1, u a uniform number, w the weight of a score, and a the logarithm of w.

**Known orders.** The part of an order that a race has already decided is stored (``uniform``). It determines later
results where it can, such as a repeated comparison. A race of delayed or clamped clocks can be decided only once.

**A second race** of the same noise with other weights is possible once (``uniform``). It couples a draft and a
target, or a draft and its replacement, if one seed makes the noise of a position, as in Gumbel coupling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept import audit
from specverify.intercept.audit import Raced, Racer
from specverify.intercept.cpython.patches import array, exp, expm1, inf, isclose, isnan, log, prod
from specverify.intercept.refusals import NeedsValue, tried
from specverify.intercept.run import mode
from specverify.intercept.symbolic import algebra
from specverify.intercept.symbolic.algebra import FRESH
from specverify.intercept.symbolic.continuous import NEAR, SYMBOLIC, Continuous, Extreme, Joined, drawn, few
from specverify.intercept.symbolic.steps import LOG, MIRRORED, MOST_OMITTED, STEPPED, plus, power, times
from specverify.intercept.symbolic.uniform import (
    Constraint,
    Runner,
    Uniform,
    agreed,
    first_of,
    law_of_second,
    look,
    note_constraint,
)
from specverify.laws import rounding
from specverify.laws.rounding import FLOAT32, FLOAT64

# Clocks

MOST_OFFSETS = 12
"""Limit of clocks in a race with truncated tails: the law is a sum over all their subsets."""


class Clock(NamedTuple):
    """The law of the time at which a clock rings: exponential, perhaps delayed, clamped, or with another tail.

    The clock rings between ``start`` and ``end``. For t > 0 and ``start + t < end``, it rings later than ``start + t``
    with probability ``(1 - at_once - offset) exp(-rate t) + offset``. It rings at ``end`` if it has not rung before.
    """

    rate: float
    start: float = 0.0
    at_once: float = 0.0
    """Probability of ringing exactly at ``start``; positive if a clamp raised earlier times to ``start``."""
    end: float = inf
    offset: float = 0.0
    """Constant term of the tail; 0 for an exponential one. A number a that is added to the uniform u in ``-log(u + a)``
    causes it: it is negative for a > 0, and the tail is then 0 at ``end``. It is positive for a < 0; the clock then has
    at least this probability of ringing at ``end`` (never, if ``end`` is infinite)."""
    flipped: bool = False
    """Whether the clock is a function of 1 - u instead of u."""

    @property
    def plain(self) -> bool:
        """Return whether the clock is neither delayed nor limited: its ring time is exponential, up to rounding."""
        late = max(self.at_once, abs(self.rate * self.start))
        return late <= FLOAT64 and abs(self.offset) <= FLOAT64 and self.later(self.end) <= FLOAT64

    @property
    def from_plain(self) -> float:
        """Return a bound of the total variation between the clock and an exponential one with the same rate."""
        late = self.later(self.end) if self.end < inf else 0.0
        return abs(self.rate * self.start) + self.at_once + abs(self.offset) + late

    def later(self, at: float) -> float:
        """Return the probability that the clock rings at time ``at`` or later, ignoring its latest time ``end``."""
        if at <= self.start:
            return 1.0
        return (1 - self.at_once - self.offset) * exp(-self.rate * (at - self.start)) + self.offset


NEVER = Clock(0.0, inf)


def clock_of(time: Any) -> Clock | None:
    """Return the clock whose ring time is ``time``: None unless ``time`` has the form ``r E + s``, with E exponential.

    The ring time of a clock is the random time at which it rings. It may be limited to an interval. An infinite
    ``time`` gives a clock that never rings.
    """
    if time == inf:
        return NEVER
    if not isinstance(time, Continuous):
        return None
    steps, slope, offset = list(time.steps), 1.0, 0.0
    if steps[:1] and steps[0].name == "times":
        slope = steps.pop(0).number
    if steps[:1] and steps[0].name == "plus":
        offset = steps.pop(0).number
    if steps[:1] != [LOG] or [step.name for step in steps[1:]] not in (["times"], ["times", "plus"]):
        return None
    scale, begin = -steps[1].number, steps[2].number if len(steps) > 2 else 0.0
    return _clamped(_of_tail(time, slope, offset, scale), begin, time) if scale > 0 else None


def _of_tail(time: Continuous, slope: float, offset: float, scale: float) -> Clock:
    """Return the clock with ring time ``-scale log(slope u + offset)``, where u is uniform in its known interval.

    ``time`` is this ring time as a symbolic number; it has the known interval of u.
    """
    low, high = time.uniform.known.low, time.uniform.known.high
    gain = 1 / (abs(slope) * (high - low))
    rest = -offset / slope - low if slope > 0 else high + offset / slope
    tail = rest / (high - low)
    largest, smallest = (1 - tail) / gain, -tail / gain
    end = -scale * log(smallest) if smallest > 0 else inf
    return Clock(1 / scale, -scale * log(largest), 0.0, end, tail, slope < 0)


def _clamped(clock: Clock, begin: float, time: Continuous) -> Clock:
    """Return ``clock`` delayed by ``begin``, with ring times limited to the range from ``time.low`` to ``time.high``.

    If the delayed clock would ring before ``time.low``, it rings at ``time.low``; it rings at ``time.high`` at the
    latest.
    """
    clock = clock._replace(start=clock.start + begin, end=clock.end + begin)
    if time.low > clock.start:
        clock = clock._replace(start=time.low, at_once=1 - clock.later(time.low))
    return clock._replace(end=min(clock.end, time.high))


def _nearly_plain(clocks: Sequence[Clock]) -> Sequence[Clock]:
    """Return ``clocks`` as exponential ones if many of them are not, but differ so little that the law shows it hardly.

    Examples are the clocks of ``-log(u + 1e-10) + 1e-10`` for a whole vocabulary. The law of the race then differs by
    at most the sum of the differences of the clocks, which is recorded. Otherwise ``clocks`` are returned unchanged.
    """
    changed = [clock.from_plain for clock in clocks if clock.rate and not clock.plain]
    if len(changed) <= MOST_OFFSETS or sum(changed) > MOST_OMITTED:
        return clocks
    rounding.known_within(sum(changed))
    return [Clock(clock.rate, flipped=clock.flipped) if clock.rate else clock for clock in clocks]


def law_of_first(clocks: Sequence[Clock], *, first_of_ties: bool) -> Any:
    """Return the probability that each clock rings first, an array ``[clocks]``.

    If several clocks ring at the same time, the first of them in ``clocks`` wins; with ``first_of_ties`` False, clocks
    that can tie are refused.
    """
    if sum(clock.offset != 0 for clock in clocks) > MOST_OFFSETS:
        raise NeedsValue("not-a-race", "the maximum of too many random numbers with truncated tails is requested")
    moments = sorted({at for clock in clocks for at in (clock.start, clock.end) if at < inf})
    silent, pmf, before = 1.0, np.zeros(len(clocks)), (moments[0], 0.0)
    for at in moments:
        running = _running(clocks, before[0], at)
        if running and silent > 0:
            shares = _shares(running, before[0], at)
            for place, share in shares.items():
                pmf[place] += silent * share
            silent *= max(0.0, 1 - sum(shares.values()))
        ringing = [(place, chance) for place, clock in enumerate(clocks) if (chance := _mass_at(clock, at)) > 0]
        chances = sorted((chance for _, chance in ringing), reverse=True)
        tied = not first_of_ties and silent * prod(chances[:2]) > FLOAT32 and len(ringing) > 1
        mass = silent * max(chances, default=0.0)
        if tied or (isclose(at, before[0], rel_tol=16 * NEAR) and mass * before[1] > FLOAT32):
            raise NeedsValue(
                "equal-numbers", "the maximum of clamped random numbers is requested, which are equal at the bound"
            )
        for place, chance in ringing:
            pmf[place] += silent * chance
            silent *= 1 - chance
        before = at, mass
    running = _running(clocks, before[0], inf)
    if running and silent > 0:
        for place, share in _shares(running, before[0], inf).items():
            pmf[place] += silent * share
    return pmf / pmf.sum()


def _running(clocks: Sequence[Clock], begin: float, end: float) -> dict[int, Clock]:
    """Return the clocks that have started by ``begin`` and do not end before ``end``, by their indices in ``clocks``.

    Each of them may ring at every time from ``begin`` to ``end``.
    """
    return {
        place: clock for place, clock in enumerate(clocks) if clock.rate and clock.start <= begin < end <= clock.end
    }


def _mass_at(clock: Clock, at: float) -> float:
    """Return the probability that ``clock`` rings exactly at time ``at``, given that it has not rung before.

    It is 0 except at the two bounds of a clock, where a clamp collects probability: it is ``clock.at_once`` at the
    start, and 1 at the latest time, because the clock must then ring.
    """
    if clock.end <= at:
        return 1.0
    return clock.at_once if clock.start == at else 0.0


def _shares(running: dict[int, Clock], begin: float, end: float) -> dict[int, float]:
    """Return, for each clock of ``running``, by its index, the probability that it rings first, and before ``end``.

    No clock has rung before ``begin``. If ``end`` is finite, the probabilities sum to less than 1.
    """
    tails = {
        place: clock.offset / (1 - clock.at_once if clock.start == begin else clock.later(begin))
        if clock.offset
        else 0.0
        for place, clock in running.items()
    }
    result = {}
    for place, clock in running.items():
        terms = {clock.rate: (1 - tails[place]) * clock.rate}
        for other, its in running.items():
            if other != place:
                terms = _times_tail(terms, its.rate, tails[other])
        result[place] = sum(
            weight * (1.0 if end == inf else -expm1(-rate * (end - begin))) / rate for rate, weight in terms.items()
        )
    return result


def _times_tail(terms: dict[float, float], rate: float, tail: float) -> dict[float, float]:
    """Return the sum of exponentials ``terms``, multiplied by ``(1 - tail) exp(-rate t) + tail``.

    ``terms`` and the result map a rate r to the weight of ``exp(-r t)`` in the sum.
    """
    result: dict[float, float] = {}
    for each, weight in terms.items():
        result[each + rate] = result.get(each + rate, 0.0) + weight * (1 - tail)
        if tail:
            result[each] = result.get(each, 0.0) + weight * tail
    return result


negative: Callable[[Any], Any] = algebra.negative
exponential: Callable[[Any], Any] = algebra.exponential

# Scores


_FAR = 700.0  # of two clocks whose rates are apart by its exponential, the slow one does not win
NO_RACE = "the maximum of several random numbers is requested, and they are not a race of clocks"


class Race(NamedTuple):
    """A race of exponential clocks that decides the order of scores (noisy numbers); clock j stands for score j.

    The largest score belongs to the clock that rings first if ``first`` is True, else to the clock that rings last.
    """

    clocks: Sequence[Clock]
    first: bool = True


def race_of(scores: Sequence[Any]) -> Race:
    """Return the race whose clocks ring in the order of ``scores``: the largest first, or the largest last.

    A score is a noisy number, such as ``E / w``. Raises ``NeedsValue`` if no clocks (see ``Clock``) ring in this order.
    """
    if any(not isinstance(score, Continuous) or score.uniform.cut for score in scores if isinstance(score, SYMBOLIC)):
        return _raced(scores)
    return _raced_before(tuple(score[1:] if isinstance(score, Continuous) else score for score in scores))


@lru_cache(maxsize=1 << 14)
def _raced_before(shapes: tuple[Any, ...]) -> Race:
    """Return the race of scores whose uniforms can have every value in [0, 1); the result is cached by ``shapes``.

    ``shapes`` has one item for each score: the functions (steps) and limits that were applied to its uniform, or the
    score itself if it is a plain number.
    """
    return _raced([Continuous(FRESH, *shape) if isinstance(shape, tuple) else shape for shape in shapes])


def _raced(scores: Sequence[Any]) -> Race:
    stripped, noise = _stripped(scores)
    if any(isinstance(score, Extreme) or (isinstance(score, Continuous) and score.in_steps) for score in stripped):
        raise NeedsValue("not-a-race", NO_RACE)
    numbers = [score for score in stripped if not isinstance(score, Continuous)]
    clocks = None
    if len({each[1:] for each in noise}) == 1 and not noise[0].clamped and all(each == -inf for each in numbers):
        clocks = _alike(stripped, flipped=not noise[0].increasing)
    if clocks is not None and len(noise) > 2:  # two may race with others later, and are known by their own clocks
        return Race(clocks)
    shift = max(_summand(each) for each in noise)
    for to_time in (_of_ratio, _of_multiple, _of_power, lambda score: _of_sum(score, shift)):
        result = _in_time(stripped, to_time)
        if result is not None and any(clock.rate for clock in result):
            return Race(result)
    last = _in_reverse(scores)
    if last is not None:
        return Race(last, first=False)
    if clocks is None:
        raise NeedsValue("not-a-race", NO_RACE)
    return Race(clocks)


def _in_reverse(scores: Sequence[Any]) -> list[Clock] | None:
    """Return one clock for each score, such that the score with the *latest* ring time is the largest, or None.

    A clock rings at a random time, its ring time. Here a score must increase with the ring time, as for the argmax of
    exponential numbers. A score that is a plain number cannot win: its clock is ``NEVER``, which takes no part in the
    race. Returns None if a plain number could be the largest, or if the scores are no increasing functions of ring
    times.
    """
    noise = [negative(score) for score in scores if isinstance(score, Continuous)]
    least = min(-score.ends()[1] for score in noise)
    if any(score > least for score in scores if not isinstance(score, Continuous)):
        return None
    shift = max(_summand(each) for each in noise)
    for to_time in (_of_ratio, _of_multiple, _of_power, lambda score: _of_sum(score, shift)):
        result = _in_time(noise, to_time)
        if result is not None and all(clock.rate for clock in result):
            clocks = iter(result)
            return [next(clocks) if isinstance(score, Continuous) else NEVER for score in scores]
    return None


def _alike(scores: Sequence[Any], *, flipped: bool) -> list[Clock] | None:
    """Return a clock of rate 1 for each score, or None if a comparison has narrowed the interval of a uniform.

    All scores are the same function of their uniforms u. A clock rings at -log u, or with ``flipped`` at -log(1 - u). A
    plain number gets a clock that never rings.
    """
    known = [score.uniform.known for score in scores if isinstance(score, Continuous)]
    if any(each.low > 0 or each.high < 1 for each in known):
        return None
    return [Clock(1.0, flipped=flipped) if isinstance(score, Continuous) else NEVER for score in scores]


def _stripped(scores: Sequence[Any]) -> tuple[list[Any], list[Continuous]]:
    """Simplify scores without changing their order; return the simpler scores, and the symbolic numbers among them.

    If the last step of all symbolic scores is the same and increasing, it is removed, and its inverse is applied to the
    plain numbers. This is repeated as long as possible.
    """
    noise = [score for score in scores if isinstance(score, Continuous)]
    last = noise[0].steps[-1:]
    ended = not last or not last[0].increasing or last[0].name in STEPPED or noise[0].steps == MIRRORED
    if ended or any(each.steps[-1:] != last for each in noise):
        return list(scores), noise
    back = last[0].back
    return _stripped(
        [
            Continuous(score.uniform, score.steps[:-1], back(score.low), back(score.high))
            if isinstance(score, Continuous)
            else back(score)
            for score in scores
        ]
    )


def _in_time(scores: Sequence[Any], to_time: Callable[[Any], Any]) -> list[Clock] | None:
    """Return the clocks whose ring times are ``to_time(score)``, one for each of ``scores``.

    A ring time is the random time at which a clock rings. ``to_time`` maps larger scores to smaller times, so that the
    first clock belongs to the largest score. Returns None if one of these times is no ring time of a clock.
    """
    try:
        with tried():
            result = [to_time(score) for score in scores]
            steps = next((time.steps for time in result if isinstance(time, Continuous)), ())
            exponent = next((step.number for step in steps if step.name == "power"), 1.0)
            if exponent > 0:  # a power that all times have is one of the scores as well
                result = [time.then(power(1 / exponent)) if isinstance(time, Continuous) else time for time in result]
            clocks = [clock_of(time) for time in result]
    except NeedsValue:
        return None
    known = [clock for clock in clocks if clock is not None]
    return known if len(known) == len(clocks) else None


def _of_ratio(score: Any) -> Any:
    """Convert a score of the form ``w / E`` to the time ``E / w``, its reciprocal: the largest score is first.

    E is an exponential number and w a weight. Return infinity for a plain number that is at most 0. Return None for any
    other plain number, and for a symbolic score that may be negative.
    """
    if isinstance(score, Continuous):
        return algebra.divided(1.0, score) if score.ends()[0] >= 0 else None
    return inf if score <= 0 else None


def _of_multiple(score: Any) -> Any:
    """Convert a score of the form ``-E / w`` to the time ``E / w``, its negative: the largest score is first.

    E is an exponential number and w a weight.
    """
    return negative(score)


def _of_power(score: Any) -> Any:
    """Convert a score of the form ``u ** (1 / w)`` to the time ``E / w``: the largest score is first.

    u is uniform, w a weight, and ``E = -log u``, so the score is ``exp(-E / w)``. Return infinity for a plain number
    that is at most 0. Return None for any other plain number.
    """
    if isinstance(score, Continuous):
        return negative(algebra.logarithm(score))
    return inf if score <= 0 else None


def _of_sum(score: Any, shift: float) -> Any:
    """Convert a score of the form ``a - log E`` to the time ``E / exp(a)``: the largest score is first.

    E is an exponential number, so ``-log E`` is Gumbel noise. ``shift``, the largest a, is subtracted from every a to
    avoid overflow. Return infinity if a, or a plain number, is far below ``shift``. Return None for any other plain
    number.
    """
    summand = _summand(score) if isinstance(score, Continuous) else score
    if summand < shift - _FAR:
        return inf
    if not isinstance(score, Continuous):
        return None
    base = score.then(plus(-summand))
    return exponential(negative(base)).then(times(exp(shift - summand)))


def _summand(score: Continuous) -> float:
    return score.steps[-1].number if score.steps and score.steps[-1].name == "plus" else 0.0


# Reweighted


def star_of(runners: Sequence[Runner]) -> Runner | None:
    """Return the clock that rang first in the earlier race of ``runners``, or None.

    In a race, exponential clocks ring, one for each random number that is compared. Clocks of ``runners`` that have not
    raced are ignored. The result may be a clock of that race that is not in ``runners``. Returns None in three cases:
    several clocks may have rung first; the order of the others is partly known too; or the clocks took part in a
    further comparison.
    """
    roots = {runner.root(): None for runner in runners if runner.after is not None or runner.behind}
    if len(roots) != 1:
        return None
    (root,) = roots
    return None if root.told or any(runner.behind for runner in root.behind) else root


# Races


def winner(entries: Sequence[Any], *, largest: bool = True, first_of_ties: bool = True, place: str = "") -> int:
    """Return the index of the largest (or smallest) of ``entries``, of which at least one is symbolic; it is drawn.

    Of equal numbers the first counts, or with ``first_of_ties`` False they are refused. ``place`` is the line that
    compares, by default the current one. Raises ``NeedsValue`` if the order of the entries cannot be computed by
    exponential clocks, or if their noise has decided something else.
    """
    scores = [entry if largest else negative(entry) for entry in map(drawn, entries)]
    ahead = _number_ahead(scores, first_of_ties=first_of_ties)
    if ahead is not None:
        return ahead
    parts = _all_parts(scores)
    result = _order(tuple(part for part, _ in parts), 1, place, first_of_ties=first_of_ties)[0]
    return parts[result][1]


def law_of_winner(entries: Sequence[Any], *, largest: bool = True, place: str = "") -> list[tuple[int, float]] | None:
    """Return the law of the result of ``winner(entries)`` as pairs (index, probability), without drawing.

    ``place`` is the line that compares. Parameters and errors are those of ``winner``. If an entry is a maximum of
    several numbers, its index occurs once for each of them. Returns None if the law alone is not enough and the winner
    must be drawn:

    * an entry is an integer with few values;
    * a random number of the race was compared or has raced before;
    * the largest score belongs to the clock that rings last.
    """
    if any(map(few, entries)):
        return None
    scores = [entry if largest else negative(entry) for entry in entries]
    ahead = _number_ahead(scores, first_of_ties=True)
    if ahead is not None:
        return [(ahead, 1.0)]
    parts = _all_parts(scores)
    contest = _contest([part for part, _ in parts], 1, place)
    if not contest.race.first or any(_is_known(uniform) for _, uniform, _ in contest.racing):
        return None
    if contest.plain:
        rates = array([clock.rate for _, _, clock in contest.racing])
        places, masses = [at for at, _, _ in contest.racing], rates / rates.sum()
    else:
        places, masses = list(range(len(parts))), law_of_first(contest.race.clocks, first_of_ties=True)
    return [(parts[at][1], mass) for at, mass in zip(places, masses.tolist(), strict=True) if mass > 0]


def _is_known(uniform: Uniform) -> bool:
    """Return whether a uniform has been compared with a number, or has been in a race (an argmax), before."""
    known = uniform.known
    return bool(known.asked or known.raced or known.runner or known.low > 0 or known.high < 1)


def ranked(
    entries: Sequence[Any], rank: int, *, largest: bool = True, first_of_ties: bool = False, place: str = ""
) -> int:
    """Return the index of the entry with the given ``rank`` among ``entries``, of which at least one is symbolic.

    Rank 0 is the largest entry, or with ``largest`` False the smallest. ``first_of_ties``, ``place`` and the errors are
    those of ``winner``.
    """
    if any(not isinstance(entry, SYMBOLIC) and isnan(entry) for entry in entries):
        raise NeedsValue("equal-numbers", "the order of random numbers and NaN is requested")
    if rank == 0:
        return winner(entries, largest=largest, first_of_ties=first_of_ties, place=place)
    scores = [entry if largest else negative(entry) for entry in entries]
    return _order(scores, rank + 1, place, first_of_ties=first_of_ties)[rank]


def ranked_from_either_end(
    entries: Sequence[Any], rank: int, *, largest: bool = True, first_of_ties: bool = False, place: str = ""
) -> int:
    """Return the index of the entry at ``rank``; the parameters are those of ``ranked``.

    Rank 0 is the largest entry, or with ``largest`` False the smallest. If counting from rank 0 is refused, the ranks
    are counted from the other end. If two plain numbers are equal, this is done for the last rank alone, which is then
    the first: equal numbers that may win there are refused.
    """
    numbers = [entry for entry in entries if not isinstance(entry, SYMBOLIC)]
    if len(set(numbers)) < len(numbers) and rank < len(entries) - 1:
        return ranked(entries, rank, largest=largest, first_of_ties=first_of_ties, place=place)
    try:
        with tried():
            return ranked(entries, rank, largest=largest, first_of_ties=first_of_ties, place=place)
    except NeedsValue as refused:
        try:
            with tried():
                return ranked(entries, len(entries) - 1 - rank, largest=not largest, place=place)
        except NeedsValue:
            raise refused.again() from None


def _number_ahead(scores: Sequence[Any], *, first_of_ties: bool) -> int | None:
    """Return the index of a plain number that wins the race for certain; None if a symbolic score may exceed it.

    ``scores`` are the plain and symbolic numbers of the race. A NaN wins. If several plain numbers are the largest, the
    first counts; with ``first_of_ties`` False they are refused.
    """
    numbers = {at: score for at, score in enumerate(scores) if not isinstance(score, SYMBOLIC)}
    if not numbers:
        return None
    undefined = next((at for at, number in numbers.items() if isnan(number)), None)
    most = max(numbers.values())
    if undefined is not None:
        return undefined
    if any(most < score.ends()[1] for score in scores if isinstance(score, SYMBOLIC)):
        return None
    result = [at for at, number in numbers.items() if number == most]
    if len(result) > 1 and not first_of_ties:
        raise NeedsValue(
            "equal-numbers", "the maximum of equal numbers is requested, and which of them is returned is undefined"
        )
    return result[0]


def _all_parts(scores: Sequence[Any]) -> list[tuple[Any, int]]:
    """Return the numbers that race for the largest of ``scores``, as pairs (number, index of its score).

    A score that is a maximum of several numbers has all of them, any other score only itself. A number that occurs in
    several scores is listed once, with the first index.
    """
    parts = [(part, at) for at, score in enumerate(scores) for part in _parts(score)]
    noise = [part for part, _ in parts if isinstance(part, Continuous)]
    if len(parts) > len(scores) and len({id(part.uniform.known) for part in noise}) < len(noise):
        return _without_twice(parts)
    return parts


def _parts(score: Any) -> tuple[Any, ...]:
    """Return the numbers whose maximum is ``score``: its parts if it is a maximum of several, else ``score`` alone.

    Raises ``NeedsValue`` for a ``score`` that is another order statistic, such as a minimum.
    """
    if not isinstance(score, Extreme):
        return (score,)
    if not score.largest or score.rank:
        raise NeedsValue(
            "order-of-joined", "the maximum of several random numbers is requested, and one is the smallest of others"
        )
    return score.parts


def _without_twice(parts: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    result: dict[Any, tuple[Any, int]] = {}
    for part, at in parts:
        result.setdefault(part, (part, at))
    return list(result.values())


class _Contest(NamedTuple):
    """A race among scores: its exponential clocks, and the uniform numbers from which they are computed."""

    race: Race
    racing: list[tuple[int, Uniform, Clock]]
    """Participants: (index in the row, uniform, clock)."""
    plain: bool
    """Whether all clocks start at the same time and none is clamped."""


def _contest(scores: Sequence[Any], number: int, place: str) -> _Contest:
    """Check that exponential clocks determine the largest of ``scores``, record this race for the audit, and return it.

    ``number`` is how many of the largest scores are requested, ``place`` the line that compares. Raises ``NeedsValue``
    if there are no such clocks, or if the noise has already decided something else.
    """
    noise = [score.uniform for score in scores if isinstance(score, Continuous)]
    for uniform in noise:
        look(uniform.draw)
    if any(isinstance(score, Joined) for score in scores) or any(uniform.known.together for uniform in noise):
        raise NeedsValue("not-a-race", f"{NO_RACE}: one is made of several, or was compared together with others")
    race = race_of(scores)
    race = race._replace(clocks=_nearly_plain(race.clocks))
    racing = [(at, score.uniform, clock) for at, (score, clock) in enumerate(zip(scores, race.clocks, strict=True))
              if clock.rate]  # fmt: skip
    known = [uniform.known for _, uniform, _ in racing]
    audit.raced(
        [Racer(uniform.draw, uniform.known.questions, uniform.known.raced, log(clock.rate))
         for _, uniform, clock in racing], place)  # fmt: skip
    if len({id(uniform.known) for uniform in noise}) < len(noise):
        raise NeedsValue(
            "compared-in-two-ways",
            "the maximum of several random numbers is requested, and one number is the noise of two entries",
        )
    again = any(each.raced for each in known)
    if again and not all(each.runner and not each.runner.told if each.raced else True for each in known):
        raise NeedsValue("second-race", "random noise is used in a second race, or after it was compared with a number")
    plain = all(clock.plain for _, _, clock in racing)
    if not plain and (again or not race.first or number > 1):
        raise NeedsValue("second-race", "random noise that is clamped or has been compared is used in a second race")
    return _Contest(race, racing, plain)


def _order(scores: Sequence[Any], number: int, place: str, *, first_of_ties: bool) -> list[int]:
    """Return the indices of the ``number`` largest scores, the largest first; the unknown part of their order is drawn.

    ``place`` is the line of the program that compares; ``first_of_ties`` as for ``winner``.
    """
    race, racing, plain = _contest(scores, number, place)
    drawn = _Contestants(racing, len(scores))
    if plain:
        result = _by_order(drawn, race, number, scores)
    else:
        result = [drawn.one(law_of_first(race.clocks, first_of_ties=first_of_ties), scores)]
    for _, uniform, clock in racing:
        uniform.known.raced = Raced(place or audit.place(), log(clock.rate))
    return result if len(result) == number else _and_numbers(scores, result, number)


class _Contestants(NamedTuple):
    """The uniforms that take part in a race of exponential clocks.

    ``racing`` has (index in the row of scores, uniform, clock) for each of them. The time at which the clock rings is a
    function of the uniform. ``size`` is the number of scores in the row.
    """

    racing: Sequence[tuple[int, Uniform, Clock]]
    size: int

    def one(self, pmf: Any, among: Sequence[Any], places: Sequence[int] = ()) -> int:
        """Draw the winner of a race and return its index in ``among``, a sequence of clocks or scores.

        ``pmf`` is the law of the index. ``places`` are the indices of ``among`` in the row of scores: the outcome of
        the recorded draw is then the index in the row. They are () if ``among`` is the row, or has other clocks too.
        """
        uniform, coupled = self.racing[0][1], mode().coupled
        uniform.known.asked += 1
        if coupled is not None:
            coupled.learn(uniform for _, uniform, _ in self.racing)
            return int((coupled.first if isinstance(among[0], Runner) else coupled.largest)(pmf, among))
        site = ("race", *uniform.known.site, uniform.known.asked)
        note_constraint(site, Constraint(tuple(uniform.known for _, uniform, _ in self.racing)))
        if not places:
            return uniform.draws.categorical(pmf, site)
        whole = [0.0] * self.size
        for place, mass in zip(places, pmf.tolist(), strict=True):
            whole[place] = mass
        return places.index(uniform.draws.categorical(array(whole), site))


def _by_order(drawn: _Contestants, race: Race, number: int, scores: Sequence[Any]) -> list[int]:
    """Return the indices of the ``number`` largest scores, the largest first.

    ``drawn`` has the exponential clocks of ``race``, which ring in the order of ``scores``. Only the unknown part of
    the order of the clocks is drawn.
    """
    for _, uniform, clock in drawn.racing:
        if uniform.known.runner is None:
            uniform.known.runner = Runner(clock.rate, flipped=clock.flipped, known=uniform.known)
    runners = {uniform.known.runner: (at, clock) for at, uniform, clock in drawn.racing if uniform.known.runner}
    turned = [runner.flipped != clock.flipped for runner, (_, clock) in runners.items()]
    rates = [clock.rate for _, clock in runners.values()]
    alike = len(set(rates)) == 1 and all(turned)
    if any(turned) and not alike:
        raise NeedsValue("second-race", "random noise is used in a second race, with other weights")
    if not agreed(list(runners), rates):
        once = number == 1 and race.first and not any(turned)
        return [_reweighted(drawn, list(runners), rates, [scores[at] for at, _, _ in drawn.racing], once=once)]

    def ringing_first(pmf: Any, front: Sequence[Runner]) -> int:
        places = [runners[runner][0] for runner in front if runner in runners]
        return drawn.one(pmf, front, places if len(places) == len(front) else ())

    left, result, first = list(runners), [], race.first != alike
    for _ in range(min(number, len(left)) if first else len(left)):
        ringing = first_of(left, ringing_first)
        left.remove(ringing)
        result.append(runners[ringing][0])
    return result if first else result[::-1][:number]


def _reweighted(
    drawn: _Contestants, runners: list[Runner], rates: list[float], scores: Sequence[Any], *, once: bool
) -> int:
    """Return the index of the largest score in a second race of the same noise with other weights, drawn.

    Args:
        drawn: The uniforms of the second race.
        runners: Their clocks, with the rates and known order of the first race.
        rates: Rates of the clocks in the second race.
        scores: Numbers of the second race.
        once: Whether only the first clock is requested.

    Raises:
        NeedsValue: If ``once`` is False, or if the first race decided more than its first clock.
    """
    root = star_of(runners) if once else None
    if root is None:
        raise NeedsValue(
            "second-race",
            "random noise is used in a second race with other weights, and its values are constrained by the first",
        )
    raced = [*root.all_behind()]
    before = [runner.rate if runner in raced else 0.0 for runner in runners]
    first = runners.index(root) if root in runners else None
    law = law_of_second(before, rates, sum(runner.rate for runner in raced), first)
    result = drawn.one(law, scores, [place for place, _, _ in drawn.racing])
    for runner in raced:
        runner.told = True
    for _, uniform, _ in drawn.racing:
        uniform.known.runner = None
    return drawn.racing[result][0]


def _and_numbers(scores: Sequence[Any], symbolic: list[int], number: int) -> list[int]:
    """Return the indices of the ``number`` largest of ``scores``, the largest first.

    ``symbolic`` has the indices of the symbolic scores, the largest first; all of them exceed the plain numbers. Equal
    plain numbers are refused.
    """
    rest = [at for at in range(len(scores)) if at not in symbolic]
    values = [-inf if isinstance(scores[at], Continuous) else scores[at] for at in rest]
    if len(set(values)) < len(values):
        raise NeedsValue("equal-numbers", "the order of equal numbers after random ones is requested")
    return [*symbolic, *(rest[at] for at in np.argsort(values)[::-1])][:number]
