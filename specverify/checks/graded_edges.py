"""The probability of a fault that needs a random number at an end of its interval.

The fault is searched again with the number at growing distances from the end, until it is gone. The probability of the
edge is at most the largest distance at which it may occur. Two premises: a fault that is gone at one distance does not
return closer to the middle (a few larger distances are tested), and rows like these are met at every draft.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from specverify.base.edges import once_in
from specverify.base.verdict import Examination

WIDEST = 2.0**-6
"""A fault that is there at this distance is not at an end."""
LARGER = (WIDEST, 2.0**-18, 2.0**-30)
"""Distances at which a fault has to be gone, the largest first."""
STEPS = (1, 2, 4, 16, 2**8, 2**16)
"""Distances near the end, in numbers that the generator tells apart."""


class Look(NamedTuple):
    """The result of a search for a fault with the numbers at one distance from their extreme value."""

    faulty: bool
    closer: float
    """The probability that a number is closer to its end, at most; 0 where no number had an end."""


def probability_of(look: Callable[[float], Look], least: float) -> float:
    """Return an upper bound on the probability of an edge per draft; 1 if it is not known.

    ``look(apart)`` searches the fault at a distance; ``least`` is the smallest distance of the dtype.
    """
    bound = 1.0
    for apart in LARGER:
        seen = look(apart)
        if seen.faulty or not seen.closer:
            return bound
        bound = min(float(seen.closer), 1.0)
    for apart in (least * step for step in STEPS):
        if apart >= LARGER[-1]:
            break
        seen = look(apart)
        if not seen.faulty:
            return min(bound, float(seen.closer))
    return bound


def is_below(edge: float, look: Callable[[float], Look], numbers: int, least: float) -> bool:
    """Return whether the probability of a fault is below ``edge``, from one search.

    ``numbers`` random numbers are examined together; each has its extreme value with probability at most ``least``.
    """
    if not 0 < numbers * least < edge:
        return False
    distance = min(2.0 ** math.floor(math.log2(edge / numbers)), WIDEST)
    seen = look(distance / 2 if numbers * distance >= edge else distance)
    return not seen.faulty and 0 < seen.closer < edge


def at_an_edge(refutation: Examination, probability: float) -> Examination:
    """Return a refutation with the probability of its edge added; unchanged if it is no edge."""
    if probability >= 1:
        return refutation
    statement = f"{refutation.statement}: {once_in(probability)}"
    return refutation._replace(statement=statement, figures={**refutation.figures, "edge": probability})


def holds_beside(edges: list[Mapping[str, Any]], runs: int) -> Examination:
    """Return the examination of a case without refutations, with its edges as notes."""
    figures = {"runs": runs, "edges": edges} if edges else {"runs": runs}
    return Examination("nothing forbidden comes out", rational=False, figures=figures)
