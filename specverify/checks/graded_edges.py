"""The probability of a fault that occurs only if a random number is close to an end of its range ("edge").

The fault is searched again with the number at growing distances from the end, until it no longer occurs. The
probability of the edge is at most the largest distance at which it may occur. Two premises: a fault that is gone at one
distance does not return closer to the middle (a few larger distances are tested), and rows like these occur at every
draft.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from specverify.base.edges import once_in
from specverify.base.verdict import Examination

WIDEST = 2.0**-6
"""Largest distance from the end of the range for an edge; a fault that still occurs there is an ordinary fault."""
LARGER = (WIDEST, 2.0**-18, 2.0**-30)
"""Distances at which an edge must no longer occur, the largest first."""
STEPS = (1, 2, 4, 16, 2**8, 2**16)
"""Distances near the end, as multiples of the generator's smallest step."""


class Look(NamedTuple):
    """The result of a search for a fault with random numbers at one distance from the end of their range.

    ``faulty`` states whether the fault occurred.
    """

    faulty: bool
    closer: float
    """An upper bound on the probability that a number is closer to its end; 0 if no number was at an end."""


def probability_of(look: Callable[[float], Look], least: float) -> float:
    """Return an upper bound on the probability per draft of an edge; 1 if it is not known.

    ``look(apart)`` searches for the fault with random numbers at the distance ``apart`` from the end of their range.
    ``least`` is the smallest such distance in the dtype of the numbers.
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
    """Return whether one further search shows that the fault has a probability per draft below ``edge``.

    ``look(apart)`` searches for the fault with random numbers at the distance ``apart`` from the end of their range.
    One distance is searched. It is chosen such that numbers closer to the end have a total probability below ``edge``.
    The result is True if there is such a distance and the fault does not occur at it. ``numbers`` random numbers are
    examined together; each has its extreme value with probability at most ``least``.
    """
    if not 0 < numbers * least < edge:
        return False
    distance = min(2.0 ** math.floor(math.log2(edge / numbers)), WIDEST)
    seen = look(distance / 2 if numbers * distance >= edge else distance)
    return not seen.faulty and 0 < seen.closer < edge


def at_an_edge(refutation: Examination, probability: float) -> Examination:
    """Return a refutation whose sentence and figures also state the ``probability`` of its edge.

    The refutation is returned unchanged if the probability is 1, that is, if the fault is not confined to an edge.
    """
    if probability >= 1:
        return refutation
    statement = f"{refutation.statement}: {once_in(probability)}"
    return refutation._replace(statement=statement, figures={**refutation.figures, "edge": probability})


def holds_beside(edges: list[Mapping[str, Any]], runs: int) -> Examination:
    """Return the examination of a case that holds after ``runs`` runs; ``edges``, its unlikely faults, become notes."""
    figures = {"runs": runs, "edges": edges} if edges else {"runs": runs}
    return Examination("nothing forbidden comes out", rational=False, figures=figures)
