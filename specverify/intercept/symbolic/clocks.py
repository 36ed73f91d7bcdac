"""Clocks of a race that are late, clamped or cut off, and the law of who rings first.

A clock is an exponential time ``r E + s`` between an earliest and a latest one, of a uniform that may have been cut to
an interval. It rings later than t with probability ``c exp(-t/r) + d``. Without clamps and summands the clock of rate
1/r is the first with probability proportional to it. A small number that is added to the noise sets a clock off a
little later, one that it is clamped at gives it a moment at which it rings with a probability of its own, one that is
added to the uniform takes something off its tail: that law is exact as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.symbolic.continuous import NEAR, Continuous
from specverify.intercept.symbolic.steps import LOG
from specverify.intercept.symbolic.uniform import NeedsValue
from specverify.intercept.unpatched import exp, expm1, inf, isclose, log, prod
from specverify.laws.rounding import FLOAT32, FLOAT64

MOST_OFFSETS = 12
"""A law of so many clocks with a tail takes as many terms as they have subsets."""


class Clock(NamedTuple):
    """Rings at ``start`` with probability ``at_once``, from then on at ``rate``, at ``end`` for certain.

    Later than t after its start it rings with probability ``(1 - at_once - offset) exp(-rate t) + offset``.
    """

    rate: float
    start: float = 0.0
    at_once: float = 0.0
    end: float = inf
    offset: float = 0.0
    flipped: bool = False
    """Whether it is of 1 - u."""

    @property
    def plain(self) -> bool:
        """Whether it is an exponential of its rate, but for less than float64 rounds."""
        late = max(self.at_once, abs(self.rate * self.start))
        return late <= FLOAT64 and abs(self.offset) <= FLOAT64 and self.later(self.end) <= FLOAT64

    def later(self, at: float) -> float:
        """Return the probability that it rings at a time or later, if it does not ring at its end."""
        if at <= self.start:
            return 1.0
        return (1 - self.at_once - self.offset) * exp(-self.rate * (at - self.start)) + self.offset


NEVER = Clock(0.0, inf)


def clock_of(time: Any) -> Clock | None:
    """Return the clock that rings at ``r E + s``, clamped, E the exponential of a uniform; None for another time."""
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
    """Return the clock of ``-scale log(slope u + offset)``, u between what is known of it."""
    low, high = time.uniform.known.low, time.uniform.known.high
    gain = 1 / (abs(slope) * (high - low))
    rest = -offset / slope - low if slope > 0 else high + offset / slope
    tail = rest / (high - low)
    largest, smallest = (1 - tail) / gain, -tail / gain
    end = -scale * log(smallest) if smallest > 0 else inf
    return Clock(1 / scale, -scale * log(largest), 0.0, end, tail, slope < 0)


def _clamped(clock: Clock, begin: float, time: Continuous) -> Clock:
    """Return the clock ``begin`` later and within the clamps of a time."""
    clock = clock._replace(start=clock.start + begin, end=clock.end + begin)
    if time.low > clock.start:
        clock = clock._replace(start=time.low, at_once=1 - clock.later(time.low))
    return clock._replace(end=min(clock.end, time.high))


def law_of_first(clocks: Sequence[Clock], *, first_of_ties: bool) -> Any:
    """Return the probability of each clock to ring first; of several that ring at once it is the first of the row."""
    if sum(clock.offset != 0 for clock in clocks) > MOST_OFFSETS:
        raise NeedsValue(
            "not-a-race", "the largest of more random numbers is asked for than can be told where their tails are cut"
        )
    moments = sorted({at for clock in clocks for at in (clock.start, clock.end) if at < inf})
    silent, pmf, before = 1.0, np.zeros(len(clocks)), (moments[0], 0.0)
    for at in moments:
        running = _running(clocks, before[0], at)
        if running and silent > 0:
            shares = _shares(running, before[0], at)
            for place, share in shares.items():
                pmf[place] += silent * share
            silent *= max(0.0, 1 - sum(shares.values()))
        ringing = [(place, chance) for place, clock in enumerate(clocks) if (chance := _chance(clock, at)) > 0]
        chances = sorted((chance for _, chance in ringing), reverse=True)
        tied = not first_of_ties and silent * prod(chances[:2]) > FLOAT32 and len(ringing) > 1
        mass = silent * max(chances, default=0.0)
        if tied or (isclose(at, before[0], rel_tol=16 * NEAR) and mass * before[1] > FLOAT32):
            raise NeedsValue(
                "equal-numbers", "random numbers that are clamped are as good as equal, and the largest is asked for"
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
    """Return the clocks that may ring between two moments."""
    return {
        place: clock for place, clock in enumerate(clocks) if clock.rate and clock.start <= begin < end <= clock.end
    }


def _chance(clock: Clock, at: float) -> float:
    """Return the probability that a clock that has not rung rings at a moment."""
    if clock.end <= at:
        return 1.0
    return clock.at_once if clock.start == at else 0.0


def _shares(running: dict[int, Clock], begin: float, end: float) -> dict[int, float]:
    """Return the probability of each clock to be the first, between two moments, if none has rung before."""
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
    """Return a sum of exponentials, weights by their rates, times ``(1 - tail) exp(-rate t) + tail``."""
    result: dict[float, float] = {}
    for each, weight in terms.items():
        result[each + rate] = result.get(each + rate, 0.0) + weight * (1 - tail)
        if tail:
            result[each] = result.get(each, 0.0) + weight * tail
    return result
