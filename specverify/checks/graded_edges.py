"""The probability of a fault that occurs only if a random number is close to an end of its range ("edge").

The fault is searched again with the number at growing distances from the end, until it no longer occurs. The
probability of the edge is at most the largest distance at which it may occur. This rests on two premises: a fault that
is gone at one distance does not return closer to the middle (a few larger distances are tested), and every draft is
verified with rows like those of the search.
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
"""Distances at which an edge must no longer occur, the largest first. Where it still does, those between are searched.
"""
STEPS = (1, 2, 4, 16, 2**8, 2**16)
"""Distances near the end, as multiples of the generator's smallest step."""


class Look(NamedTuple):
    """The result of one search for a fault, with random numbers at one distance from the end of their range.

    ``faulty`` states whether the fault occurs. ``closer`` is an upper bound on the probability that a random number is
    closer to the end than in this search.
    """

    faulty: bool
    closer: float
    """An upper bound on the probability that a number is closer to its end; 0 if no number was at an end."""

    def is_gone(self, edge: float) -> bool:
        """Return whether the fault does not occur, and numbers closer to the end have a probability below ``edge``."""
        return not self.faulty and 0 < self.closer < edge


def probability_of(look: Callable[[float], Look], least: float, bound: float | None = None) -> float:
    """Return an upper bound on the probability per draft that a fault occurs; 1 if it also occurs far from the end.

    Args:
        look: ``look(apart)`` searches for the fault with random numbers at the distance ``apart`` from the end.
        least: The smallest such distance in their dtype.
        bound: An upper bound that is known already, because the fault does not occur far from the end. None: the
            distances ``LARGER`` are searched first.
    """
    if bound is None:
        bound, gone = 1.0, 1.0
        for apart in LARGER:
            seen = look(apart)
            if seen.faulty or not seen.closer:
                return _between(look, apart, gone, bound) if seen.faulty and bound < 1 else bound
            bound, gone = min(float(seen.closer), 1.0), apart
    for apart in (least * step for step in STEPS):
        if apart >= LARGER[-1]:
            break
        seen = look(apart)
        if not seen.faulty:
            return min(bound, float(seen.closer))
    return bound


def _between(look: Callable[[float], Look], faulty: float, gone: float, bound: float) -> float:
    """Return an upper bound on the probability of a fault that occurs at the distance ``faulty``, but not at ``gone``.

    Distances between the two are searched, until they differ by a factor of 2. ``bound`` is the bound so far.
    """
    while gone > 2 * faulty:
        apart = 2.0 ** math.floor((math.log2(faulty) + math.log2(gone)) / 2)
        seen = look(apart)
        if seen.faulty or not seen.closer:
            faulty = apart
        else:
            bound, gone = min(float(seen.closer), bound), apart
    return bound


def is_below(edge: float, look: Callable[[float], Look], numbers: int, least: float) -> bool:
    """Return whether a fault at an end of a random number's range has a probability per draft below ``edge``.

    The fault is searched once more, with the random numbers moved away from the end. Their distance is such that
    numbers closer to the end have a total probability below ``edge``. If the fault does not occur there, the answer is
    True.

    Args:
        edge: The probability.
        look: ``look(apart)`` searches for the fault with random numbers at the distance ``apart`` from the end.
        numbers: The number of random numbers that are at the end at the same time.
        least: The largest probability of the extreme value of one of these numbers.
    """
    if not 0 < numbers * least < edge:
        return False
    distance = min(2.0 ** math.floor(math.log2(edge / numbers)), WIDEST)
    seen = look(distance / 2 if numbers * distance >= edge else distance)
    return seen.is_gone(edge)


def at_an_edge(refutation: Examination, probability: float) -> Examination:
    """Return a refutation with the ``probability`` of its fault added to its sentence and figures.

    The fault occurs if a random number is close to an end of its range, 0 or 1. A probability of 1 states that the
    fault also occurs far from the ends; then the refutation is returned unchanged.
    """
    if probability >= 1:
        return refutation
    statement, example = f"{refutation.statement}: {once_in(probability)}", refutation.counterexample
    if example is not None and example.fault:
        example = example._replace(fault=f"{example.fault}; {once_in(probability)}")
    figures = {**refutation.figures, "edge": probability}
    return refutation._replace(statement=statement, counterexample=example, figures=figures)


def holds_beside(edges: list[Mapping[str, Any]], runs: int) -> Examination:
    """Return the examination of a case that holds after ``runs`` runs, although very improbable faults were found.

    ``edges`` are these faults, each at an end of the range of a random number; they become notes.
    """
    figures = {"runs": runs, "edges": edges} if edges else {"runs": runs}
    return Examination("nothing forbidden comes out", rational=False, figures=figures)
