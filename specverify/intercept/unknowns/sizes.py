"""How many random numbers, or outcomes, one call may have: checked before anything of that size is built."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from specverify.intercept.unknowns.uniform import refusal
from specverify.intercept.unknowns.wide import at_large_now

MOST_NUMBERS = 1_000_000
"""Random numbers of one call, each of which is an object; and outcomes that are expanded to an array."""
MOST_AT_LARGE = 50_000_000
"""The same at a real vocabulary, where they are kept in arrays of floats."""


def most() -> int:
    """Return how many numbers of one call are kept here."""
    return MOST_AT_LARGE if at_large_now() else MOST_NUMBERS


def check_numbers(call: str, size: Any) -> None:
    """Refuse a ``call`` of more random numbers than are kept; ``size`` is a number, a shape or None."""
    count = 1 if size is None else math.prod(_lengths(size))
    if count > most():
        raise refusal(
            "too-many-numbers", f"{call} draws {count} random numbers, and no more than {most()} are followed"
        )


def check_outcomes(call: str, number: int) -> None:
    """Refuse a ``call`` of more outcomes than are expanded."""
    if number > most():
        raise refusal("too-many-outcomes", f"{call} has {number} outcomes, more than can be enumerated")


def _lengths(size: Any) -> Iterable[int]:
    """Return the lengths of a shape; a number stands for one, and what is neither is left to the library."""
    lengths = size if isinstance(size, Iterable) else (size,)
    return [int(length) for length in lengths if isinstance(length, int | np.integer)]
