"""From scores to clocks: whether numbers of which the largest is asked for are a race, and of which clocks.

All scores are to be one decreasing function of times, or one increasing function. They may be spelled as ratios,
multiples, powers or sums: each is undone, and what is left are times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import exp, inf  # by name: inside a block ``math`` has others
from typing import Any, NamedTuple

from specverify.intercept.block import tried
from specverify.intercept.unknowns.clocks import NEVER, Clock, clock_of
from specverify.intercept.unknowns.continuous import Continuous, Extreme
from specverify.intercept.unknowns.elementwise import applied
from specverify.intercept.unknowns.joined import UNKNOWN
from specverify.intercept.unknowns.remembered import FRESH
from specverify.intercept.unknowns.steps import MIRRORED, STEPPED, plus, power, times
from specverify.intercept.unknowns.uniform import NeedsValue

_FAR = 700.0  # of two clocks whose rates are apart by its exponential, the slow one does not win
NO_RACE = "the largest of several random numbers is asked for, and they are not a race of clocks"


class Race(NamedTuple):
    """Scores as clocks: the largest score is that of the first to ring, or of the last."""

    clocks: Sequence[Clock]
    first: bool = True


def race_of(scores: Sequence[Any]) -> Race:
    """Return scores as clocks. Raises ``NeedsValue`` where they are no race."""
    if any(not isinstance(score, Continuous) or score.uniform.cut for score in scores if isinstance(score, UNKNOWN)):
        return _raced(scores)
    return _raced_before(tuple(score[1:] if isinstance(score, Continuous) else score for score in scores))


@lru_cache(maxsize=1 << 14)
def _raced_before(shapes: tuple[Any, ...]) -> Race:
    """Return fresh random numbers, by their steps and clamps, and numbers as clocks, as it was found before."""
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
        found = _in_time(stripped, to_time)
        if found is not None and any(clock.rate for clock in found):
            return Race(found)
    last = _in_reverse(scores)
    if last is not None:
        return Race(last, first=False)
    if clocks is None:
        raise NeedsValue("not-a-race", NO_RACE)
    return Race(clocks)


def _in_reverse(scores: Sequence[Any]) -> list[Clock] | None:
    """Return the clocks of scores that grow with a time: the last to ring is the largest. None if they are no such."""
    noise = [applied("negative", score) for score in scores if isinstance(score, Continuous)]
    least = min(-score.ends()[1] for score in noise)
    if any(score > least for score in scores if not isinstance(score, Continuous)):
        return None
    shift = max(_summand(each) for each in noise)
    for to_time in (_of_ratio, _of_multiple, _of_power, lambda score: _of_sum(score, shift)):
        found = _in_time(noise, to_time)
        if found is not None and all(clock.rate for clock in found):
            clocks = iter(found)
            return [next(clocks) if isinstance(score, Continuous) else NEVER for score in scores]
    return None


def _alike(scores: Sequence[Any], *, flipped: bool) -> list[Clock] | None:
    """Return clocks of one rate for random numbers that are one function of their uniforms."""
    known = [score.uniform.known for score in scores if isinstance(score, Continuous)]
    if any(each.low > 0 or each.high < 1 for each in known):
        return None
    return [Clock(1.0, flipped=flipped) if isinstance(score, Continuous) else NEVER for score in scores]


def _stripped(scores: Sequence[Any]) -> tuple[list[Any], list[Continuous]]:
    """Return the scores, and the random ones among them, without the last steps that all have in common."""
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
    """Return the clocks if ``to_time``, which is decreasing, makes times of the scores; None if it does not."""
    try:
        with tried():
            found = [to_time(score) for score in scores]
            steps = next((time.steps for time in found if isinstance(time, Continuous)), ())
            exponent = next((step.number for step in steps if step.name == "power"), 1.0)
            if exponent > 0:  # a power that all times have is one of the scores as well
                found = [time.then(power(1 / exponent)) if isinstance(time, Continuous) else time for time in found]
            clocks = [clock_of(time) for time in found]
    except NeedsValue:
        return None
    known = [clock for clock in clocks if clock is not None]
    return known if len(known) == len(clocks) else None


def _of_ratio(score: Any) -> Any:
    """``w / E`` is a time upside down, and more than 0."""
    if isinstance(score, Continuous):
        return applied("reciprocal", score) if score.ends()[0] >= 0 else None
    return inf if score <= 0 else None


def _of_multiple(score: Any) -> Any:
    """``-E / w`` is a time below 0."""
    return applied("negative", score)


def _of_power(score: Any) -> Any:
    """``u ** (1 / w)`` is the exponential of ``-E / w``."""
    if isinstance(score, Continuous):
        return applied("negative", applied("log", score))
    return inf if score <= 0 else None


def _of_sum(score: Any, shift: float) -> Any:
    """``a - log E``, with ``shift`` taken from every a so that the largest is an ordinary number."""
    summand = _summand(score) if isinstance(score, Continuous) else score
    if summand < shift - _FAR:
        return inf
    if not isinstance(score, Continuous):
        return None
    base = score.then(plus(-summand))
    return applied("exp", applied("negative", base)).then(times(exp(shift - summand)))


def _summand(score: Continuous) -> float:
    return score.steps[-1].number if score.steps and score.steps[-1].name == "plus" else 0.0
