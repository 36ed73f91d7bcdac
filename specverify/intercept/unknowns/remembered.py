"""What an operation gave of a random number of which nothing is known, for all that are computed alike.

A run of an enumeration computes what the run before it did, on other numbers: of a fresh number the chain of steps is
all that matters, so it is worked out once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import copysign  # by name: inside a block ``math`` has others
from typing import Any

from specverify.intercept.block import tried
from specverify.intercept.refusals import Declined
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.joined import UNKNOWN
from specverify.intercept.unknowns.steps import MonotoneStep
from specverify.intercept.unknowns.uniform import NeedsValue, Uniform
from specverify.reference import Sampled

_OTHER_OPERANDS = Declined("not one fresh number, alone or with a number that has a value")
FRESH = Uniform(Sampled(0), ("any",))
"""A number of which nothing is known, and nothing is ever asked."""


def found_before(operation: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Return what an operation gives of a fresh random number, and of a number beside it, as it was found before.

    ``Declined`` for other operands, and for what is refused. The operation may draw nothing.
    """
    if len(operands) > 2:
        return _OTHER_OPERANDS
    place = 0 if isinstance(operands[0], Continuous) or len(operands) == 1 else 1
    value, number = operands[place], operands[1 - place] if len(operands) > 1 else None
    if not isinstance(value, Continuous) or value.uniform.cut or isinstance(number, UNKNOWN):
        return _OTHER_OPERANDS
    negative = number == 0 and copysign(1.0, number) < 0  # 0 and -0 are one to who remembers, and two to who divides
    found = _found(operation, place, value.steps, value.low, value.high, number, negative=negative)
    return Continuous(value.uniform, *found) if isinstance(found, tuple) else found


@lru_cache(maxsize=1 << 16)
def _found(
    operation: Callable[..., Any],
    place: int,
    steps: tuple[MonotoneStep, ...],
    low: float,
    high: float,
    number: float | None,
    *,
    negative: bool,
) -> Any:
    """Return the steps and clamps of what an operation gives, or a number; ``Declined`` for what is refused."""
    value = Continuous(FRESH, steps, low, high)
    try:
        with tried():
            found = operation(*((value,) if number is None else (value, number) if place == 0 else (number, value)))
    except NeedsValue as refused:
        return Declined(refused.reason)
    return tuple(found[1:]) if isinstance(found, Continuous) else found
