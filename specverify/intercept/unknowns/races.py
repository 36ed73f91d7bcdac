"""Races: which of several random numbers is the largest, as one draw.

Each number is to have its own exponential clock E = -log u, or -log(1 - u), and all are to be one decreasing function
of times T = r E + s, between an earliest and a latest one. The first clock to ring wins. Without clamps and summands
that is the one of rate 1/r with probability proportional to it, which is what Gumbel noise, weights over exponentials
and powers of uniforms are made for. A small number that is added to the noise sets a clock off a little later, one that
it is clamped at gives it a moment at which it rings with a probability of its own: that law is exact as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept import audit
from specverify.intercept.audit import Raced, Racer
from specverify.intercept.block import tried
from specverify.intercept.unknowns.algebra import applied
from specverify.intercept.unknowns.continuous import LOG, NEAR, Continuous, plus, power, times
from specverify.intercept.unknowns.uniform import NeedsValue, look
from specverify.laws.rounding import FLOAT32

_FAR = 700.0
"""Of two clocks whose rates are apart by the exponential of this, the slow one does not win."""


class Clock(NamedTuple):
    """Rings at ``start`` with probability ``at_once``, from then on at ``rate``, at ``end`` for certain."""

    rate: float
    start: float = 0.0
    at_once: float = 0.0
    end: float = math.inf


NEVER = Clock(0.0, math.inf)


def winner(entries: Sequence[Any], *, largest: bool = True, first_of_ties: bool = True) -> int:
    """Return the index of the largest or smallest of numbers and random numbers, one of these at least.

    Of equal ones it is the first, unless ``first_of_ties`` is False: then ties are refused. Raises ``NeedsValue`` where
    they are no race, and where their noise has decided something before.
    """
    scores = [entry if largest else applied("negative", entry) for entry in entries]
    noise = [score.uniform for score in scores if isinstance(score, Continuous)]
    for uniform in noise:
        look(uniform.draw)
    clocks = _clocks(scores)
    racing = [(score.uniform, math.log(clock.rate)) for score, clock in zip(scores, clocks, strict=True) if clock.rate]
    audit.raced([Racer(each.draw, each.known.questions, each.known.raced, weight) for each, weight in racing])
    if len({id(uniform.known) for uniform in noise}) < len(noise):
        raise NeedsValue("the largest of several random numbers is asked for, and two of them are one number")
    if any(each.known.raced or each.known.low > 0 or each.known.high < 1 for each in noise):
        raise NeedsValue("random noise is used in a second race, or after it was compared with a number")
    pmf = _law(clocks, first_of_ties=first_of_ties)
    for uniform, weight in racing:
        uniform.known.raced = Raced(audit.place(), weight)
    return noise[0].draws.categorical(pmf, ("race", *noise[0].known.site))


# From scores to clocks


def _clocks(scores: Sequence[Any]) -> list[Clock]:
    """Return the clock of each score. Raises ``NeedsValue`` where they are no race."""
    scores, noise = _stripped(scores)
    alike = len({each[1:] for each in noise}) == 1 and not noise[0].clamped
    if alike and all(score == -math.inf for score in scores if not isinstance(score, Continuous)):
        return [Clock(1.0) if isinstance(score, Continuous) else NEVER for score in scores]
    shift = max(_summand(each) for each in noise)
    for to_time in (_of_ratio, _of_multiple, _of_power, lambda score: _of_sum(score, shift)):
        found = _in_time(scores, to_time)
        if found is not None and any(clock.rate for clock in found):
            return found
    raise NeedsValue("the largest of several random numbers is asked for, and they are not a race of clocks")


def _stripped(scores: Sequence[Any]) -> tuple[list[Any], list[Continuous]]:
    """Return the scores, and the random ones among them, without the last steps that all have in common."""
    noise = [score for score in scores if isinstance(score, Continuous)]
    last = noise[0].steps[-1:]
    if not last or not last[0].increasing or any(each.steps[-1:] != last for each in noise):
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
    """Return the clocks if ``to_time``, which is decreasing, makes times of the scores; None if it does not."""
    try:
        with tried():
            found = [to_time(score) for score in scores]
            steps = next((time.steps for time in found if isinstance(time, Continuous)), ())
            exponent = next((step.number for step in steps if step.name == "power"), 1.0)
            if exponent > 0:  # a power that all times have is one of the scores as well
                found = [time.then(power(1 / exponent)) if isinstance(time, Continuous) else time for time in found]
            clocks = [_clock(time) for time in found]
    except NeedsValue:
        return None
    known = [clock for clock in clocks if clock is not None]
    return known if len(known) == len(clocks) else None


def _of_ratio(score: Any) -> Any:
    """``w / E`` is a time upside down, and more than 0."""
    if isinstance(score, Continuous):
        return applied("reciprocal", score) if score.ends()[0] >= 0 else None
    return math.inf if score <= 0 else None


def _of_multiple(score: Any) -> Any:
    """``-E / w`` is a time below 0."""
    return applied("negative", score)


def _of_power(score: Any) -> Any:
    """``u ** (1 / w)`` is the exponential of ``-E / w``."""
    if isinstance(score, Continuous):
        return applied("negative", applied("log", score))
    return math.inf if score <= 0 else None


def _of_sum(score: Any, shift: float) -> Any:
    """``a - log E``, with ``shift`` taken from every a so that the largest is an ordinary number."""
    summand = _summand(score) if isinstance(score, Continuous) else score
    if summand < shift - _FAR:
        return math.inf
    if not isinstance(score, Continuous):
        return None
    base = score.then(plus(-summand))
    return applied("exp", applied("negative", base)).then(times(math.exp(shift - summand)))


def _summand(score: Continuous) -> float:
    return score.steps[-1].number if score.steps and score.steps[-1].name == "plus" else 0.0


def _clock(time: Any) -> Clock | None:
    """Return the clock that rings at ``r E + s``, clamped; None for another time."""
    if not isinstance(time, Continuous):
        return NEVER if time == math.inf else None
    flipped = time.steps[:2] == (times(-1.0), plus(1.0))
    steps = time.steps[2:] if flipped else time.steps
    names = [step.name for step in steps]
    if steps[:1] != (LOG,) or names[1:] not in (["times"], ["times", "plus"]) or steps[1].number > 0:
        return None
    rate, begin = -1 / steps[1].number, steps[2].number if len(steps) > 2 else 0.0
    at_once = -math.expm1(-rate * (time.low - begin)) if time.low > begin else 0.0
    return Clock(rate, max(begin, time.low), at_once, time.high)


# From clocks to a law


def _law(clocks: Sequence[Clock], *, first_of_ties: bool) -> Any:
    """Return the probability of each clock to ring first; of several that ring at once it is the first of the row."""
    rates = np.array([clock.rate for clock in clocks])
    moments = sorted({at for clock in clocks for at in (clock.start, clock.end) if at < math.inf})
    silent, pmf, before = 1.0, np.zeros(len(clocks)), (moments[0], 0.0)
    for at in moments:
        running = np.where([clock.start < at for clock in clocks], rates, 0.0)
        if running.any():
            waited = running.sum() * (at - before[0])
            pmf += running / running.sum() * silent * -math.expm1(-waited)
            silent *= math.exp(-waited)
        ringing = [(place, 1.0 if clock.end <= at else clock.at_once) for place, clock in enumerate(clocks)
                   if clock.end <= at or (clock.start == at and clock.at_once)]  # fmt: skip
        chances = sorted((chance for _, chance in ringing), reverse=True)
        tied = not first_of_ties and silent * math.prod(chances[:2]) > FLOAT32 and len(ringing) > 1
        mass = silent * max(chances, default=0.0)
        if tied or (math.isclose(at, before[0], rel_tol=16 * NEAR) and mass * before[1] > FLOAT32):
            raise NeedsValue("random numbers that are clamped are as good as equal, and the largest is asked for")
        for place, chance in ringing:
            pmf[place] += silent * chance
            silent *= 1 - chance
        before = at, mass
    if silent > 0:
        pmf += rates / rates.sum() * silent
    return pmf / pmf.sum()
