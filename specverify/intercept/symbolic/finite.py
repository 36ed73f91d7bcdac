"""Finite draws and seeds, as NumPy and ``random`` have them in common.

Whole numbers of more outcomes than can be followed, for those who need the number itself: seeds.

A seed is drawn from millions of numbers, and no law needs to know which it was: what is drawn by it is answered. So
such a number is compared like any other, and who needs it itself gets one, another one in every run. Nothing may depend
on which it is: replays tell, as they do of the random bytes of the operating system.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from specverify.intercept.caller import caller
from specverify.intercept.refusals import give
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.steps import carried_back
from specverify.intercept.symbolic.uniform import look, refusal
from specverify.intercept.unpatched import full
from specverify.laws import rounding
from specverify.reference import Draws, Site

# Given


FEWEST = 1_000_000
"""Fewer outcomes may be those of a token, a place or a coin: then nobody is given one of them."""


EVEN = {"plus", "times", "floor"}
"""Steps after which equal numbers of outcomes are as likely as before."""


def is_whole(value: Continuous) -> bool:
    """Return whether all its values are whole numbers."""
    steps = value.steps
    if steps and steps[-1].name == "plus" and steps[-1].number.is_integer():
        steps = steps[:-1]
    return bool(steps) and steps[-1].name == "floor"


def few(value: Any) -> bool:
    """Return whether it is one of few whole numbers, all as likely as each other: it may be drawn."""
    whole = isinstance(value, Continuous) and is_whole(value) and not value.clamped
    return whole and {step.name for step in value.steps} <= EVEN and _outcomes(value) <= MOST_OUTCOMES


def drawn(value: Any) -> Any:
    """Return a number that is drawn now if it is one of few whole ones, another value as it is.

    Several random numbers together are known in a closed form, or nearly; whole ones are followed one by one.
    """
    return float(given(value)) if few(value) else value


def given(value: Continuous) -> int:
    """Return one of the numbers that it can be, by the state it was drawn from; it is that number from then on.

    One of few is drawn. Raises ``NeedsValue`` if they are not whole, not equally likely, or few.
    """
    known, origin = value.uniform.known, value.uniform.draw.origin
    number = _outcomes(value)
    if not is_whole(value) or value.clamped or not {step.name for step in value.steps} <= EVEN:
        raise refusal(
            "value-needed", "the value of a random number is needed, and not all of its values are equally likely"
        )
    if 2 <= number <= MOST_OUTCOMES:
        first = value.ends()[0]
        return int(first) + value.interval_of([first + place for place in range(1, round(number))])
    if not (FEWEST <= number < math.inf or number < 2):
        raise refusal(
            "too-many-outcomes",
            f"a number of {number:.0f} outcomes is needed, more than can be enumerated and fewer than seeds have",
        )
    if known.together:
        raise refusal("value-needed", "the value of a random number is needed that was compared together with others")
    look(value.uniform.draw)
    state = os.urandom(8) if origin is None else repr(origin.state).encode()
    place = known.low + (known.high - known.low) * (zlib.crc32(state) + 0.5) / 2**32
    result = place
    for step in value.steps:
        result = step.of(result)
    ends = carried_back(value.steps, result), carried_back(value.steps, result, or_equal=True)
    known.low, known.high = max(known.low, min(ends)), min(known.high, max(ends))
    if not known.low < known.high:
        known.low, known.high = place, math.nextafter(place, 2.0)
    give(f"a number of {number:.0f} outcomes at {caller()}, given as it is")
    return int(result)


def _outcomes(value: Continuous) -> float:
    """Return how many values it can have, given what is known of it: fewer than 2 if it is one number."""
    low, high = value.uniform.known.low, value.uniform.known.high
    for step in value.steps:
        low, high = (step.of(low), step.of(high)) if step.increasing else (step.of(high), step.of(low))
    return high - low


# Finite


MOST_OUTCOMES = 10_000
FOLLOWED_AT_ONCE = 64
"""Of more outcomes none is followed before somebody needs the number itself: a comparison has two."""
FOLLOWED_IN_ARRAYS = 1_000
"""The same of all numbers of an array: what has some that are not drawn is no array of indices."""
MOST_TRIALS = 100
MOST_SHUFFLED = 8


def seed_name(seed: Any) -> str:
    """Name a seed in a way that is the same in every run: a large one may have been drawn."""
    if seed is None:
        return ""
    if type(seed) in {list, tuple}:
        return str([seed_name(each) for each in seed])
    if not isinstance(seed, int | np.integer):
        return type(seed).__name__
    return (
        str(int(seed)) if type(seed).__name__ != "SymbolicInt" and abs(int(seed)) < MOST_OUTCOMES else "a large number"
    )


def one_by_one(draws: Draws, site: Site, weights: Any, count: int) -> list[int]:
    """Draw ``count`` different indices, each from the ``weights`` of those left."""
    left = np.array(weights, dtype=np.float64)
    result: list[int] = []
    for position in range(count):
        result.append(draws.categorical(left / left.sum(), (*site, position)))
        left[result[-1]] = 0.0
    return result


def one_of(draws: Draws, site: Site, number: int) -> int:
    """Draw one of ``number`` equally likely outcomes; refuses more than ``MOST_OUTCOMES``."""
    if number > MOST_OUTCOMES:
        raise refusal("too-many-outcomes", f"{site[0]} has {number} outcomes, more than can be enumerated")
    return draws.categorical(full(number, 1.0 / number), site)


def masses(p: Any, number: int) -> Any:
    """Return the probabilities of ``choice``, checked as NumPy does."""
    if number <= 0:
        raise ValueError("a must be a positive integer or not empty")
    if p is None:
        return full(number, 1.0 / number)
    rounding.saw(getattr(p, "dtype", None))
    pmf = p if type(p) is np.ndarray and p.dtype.char == "d" else np.asarray(p, dtype=np.float64)
    if pmf.shape != (number,):
        raise ValueError("'a' and 'p' must have same size")
    total = pmf.sum()
    if min(pmf.tolist()) < 0 or math.isnan(total):
        raise ValueError("probabilities are not non-negative or contain NaN")
    if abs(total - 1) > _tolerance(getattr(p, "dtype", None)):
        raise ValueError("probabilities do not sum to 1")
    return pmf / total


@cache
def _tolerance(dtype: Any) -> float:
    """Return how far from 1 NumPy lets probabilities of a dtype sum."""
    coarse = dtype is not None and np.issubdtype(dtype, np.floating)
    return math.sqrt(np.finfo(dtype if coarse else np.float64).eps)


def heads(draws: Draws, site: Site, trials: int, chance: float) -> int:
    """Draw a binomial number of heads; refuses more than ``MOST_TRIALS``."""
    if not 0 <= trials <= MOST_TRIALS:
        raise refusal("too-many-outcomes", f"{site[0]} of {trials} trials cannot be enumerated")
    return draws.categorical(binomial_pmf(trials, chance), site)


def binomial_pmf(trials: int, chance: float) -> Any:
    """Return the probabilities of 0 to ``trials`` heads."""
    return np.array([math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)])


def drawn_out(draws: Draws, site: Site, good: int, bad: int, taken: int) -> int:
    """Draw how many of those ``taken`` out of an urn are good; refuses more than ``MOST_TRIALS`` of them."""
    if min(good, bad, taken) < 0 or taken > good + bad:
        raise ValueError("ngood, nbad and nsample must not be negative, and nsample not be more than both together")
    if taken > MOST_TRIALS:
        raise refusal("too-many-outcomes", f"{site[0]} of {taken} samples cannot be enumerated")
    ways = [math.comb(good, k) * math.comb(bad, taken - k) for k in range(taken + 1)]
    return draws.categorical(np.array([way / math.comb(good + bad, taken) for way in ways]), site)


def counts(draws: Draws, site: Site, trials: int, pmf: Any) -> list[int]:
    """Return how often each outcome came in ``trials`` draws, outcome by outcome given those before."""
    if trials == 1:
        only = draws.categorical(pmf, site)
        return [int(outcome == only) for outcome in range(len(pmf))]
    result: list[int] = []
    for outcome, mass in enumerate(pmf):
        rest = pmf[outcome:].sum()
        chance = 1.0 if outcome == len(pmf) - 1 else min(1.0, mass / rest) if rest > 0 else 0.0
        result.append(heads(draws, (*site, outcome), trials - sum(result), chance))
    return result


def filled(size: Any, draw: Callable[[tuple[int, ...]], Any], dtype: Any = np.int64) -> Any:
    """Return one draw for each index of the shape, a scalar for none."""
    if size is None or size == ():
        return dtype(draw(()))
    result = np.empty(size, dtype=dtype)
    for index in np.ndindex(*result.shape):
        result[index] = draw(index)
    return result


def check_shuffled(call: Any, number: int) -> None:
    """Refuse an order of more than ``MOST_SHUFFLED`` things."""
    if number > MOST_SHUFFLED:
        raise refusal("too-many-outcomes", f"{call} of {number} has more outcomes than can be enumerated")


def shuffled(draws: Draws, site: Site, number: int) -> list[int]:
    """Draw an order of ``number`` things; refuses more than ``MOST_SHUFFLED``."""
    check_shuffled(site[0], number)
    return one_by_one(draws, site, np.ones(number), number)
