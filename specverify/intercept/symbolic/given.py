"""Whole numbers of more outcomes than can be followed, for those who need the number itself: seeds.

A seed is drawn from millions of numbers, and no law needs to know which it was: what is drawn by it is answered. So
such a number is compared like any other, and who needs it itself gets one, another one in every run. Nothing may depend
on which it is: replays tell, as they do of the random bytes of the operating system.
"""

from __future__ import annotations

import math
import os
import zlib
from typing import Any

from specverify.intercept.caller import caller
from specverify.intercept.refusals import give
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.steps import carried_back
from specverify.intercept.symbolic.uniform import look, refusal

MOST_OUTCOMES = 10_000
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
