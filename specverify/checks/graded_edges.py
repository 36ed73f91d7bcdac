"""How likely a fault is that a random number at an end of its interval shows.

A fault is looked for again with the number at growing distances from its end, until it is gone. What is drawn closer to
the end than that is all that may show it: the probability of an edge is an upper bound. Two premises: a fault that is
gone at one distance does not come back nearer to the middle, which a few larger distances are tried for; and rows like
these are met at every draft.
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
    """What is seen with the numbers at one distance from their end."""

    faulty: bool
    closer: float
    """The probability that a number is closer to its end, at most; 0 where no number had an end."""


def probability_of(look: Callable[[float], Look], least: float) -> float:
    """Return how likely an edge is per draft, at most; 1 where that is not known.

    ``look(apart)`` looks for the fault at a distance, and ``least`` is the smallest one that numbers have.
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
    """Return whether a fault is shown with less probability than ``edge``, found by one look.

    ``numbers`` are looked at together, each of which has its very end with a probability of up to ``least``.
    """
    if not 0 < numbers * least < edge:
        return False
    distance = min(2.0 ** math.floor(math.log2(edge / numbers)), WIDEST)
    seen = look(distance / 2 if numbers * distance >= edge else distance)
    return not seen.faulty and 0 < seen.closer < edge


def at_an_edge(refutation: Examination, probability: float) -> Examination:
    """Return the refutation with how likely its fault is; one that is no edge stays as it is."""
    if probability >= 1:
        return refutation
    statement = f"{refutation.statement}: {once_in(probability)}"
    return refutation._replace(statement=statement, figures={**refutation.figures, "edge": probability})


def holds_beside(edges: list[Mapping[str, Any]], runs: int) -> Examination:
    """Return the examination of a case in which nothing refutes, with its edges."""
    figures = {"runs": runs, "edges": edges} if edges else {"runs": runs}
    return Examination("nothing forbidden comes out", rational=False, figures=figures)
