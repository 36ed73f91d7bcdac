"""A uniform number among very many bounds: an inverse CDF over a real vocabulary, as one draw that stays open.

``Lookup`` is the number of bounds at or below it. ``Crossing`` is what a comparison with all of them gives, an array of
bools that are decided together: the sum of it, or the place of its first True, is the same draw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.audit import Raced, place
from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.many_steps import Steps, back
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.intercept.unknowns.wide import Drawn, Wide
from specverify.laws import rounding


def goes_in_arrays(value: Any) -> bool:
    """Return whether a random number may be looked up among all bounds together: no value of it has a probability."""
    return isinstance(value, Continuous) and not value.clamped and not value.in_steps


def lookup(value: Continuous, bounds: Any) -> Drawn:
    """Return the draw of how many of the non-decreasing ``bounds`` ``[bounds]`` are at or below the number.

    Raises ``RuleDeclined`` for a number that does not go in arrays, ``NeedsValue`` for bounds that are not sorted.
    """
    if not goes_in_arrays(value):
        raise RuleDeclined(
            "a number that is clamped, has steps or is made of others is looked up among very many bounds"
        )
    found, where = np.asarray(bounds, dtype=np.float64), place()
    if (np.diff(found) < 0).any() or np.isnan(found).any():
        raise NeedsValue("unsorted-bounds", "a random number is looked up in bounds that are not sorted")
    with np.errstate(all="ignore"):
        for step in reversed(value.steps):
            found = back(Steps(*step), found)
    uniform = value.uniform

    def law() -> Any:
        known = uniform.known
        if known.raced or known.together:
            raise NeedsValue("second-race", "a random number is looked up after a race, or after another lookup")
        ordered = found if value.increasing else found[::-1]
        edges = np.concatenate([[known.low], np.clip(ordered, known.low, known.high), [known.high]])
        masses = np.diff(edges) / (known.high - known.low)
        rounding.looked_up(int(np.count_nonzero(masses)))
        return masses if value.increasing else masses[::-1]

    def settle(_: int | None) -> None:
        if not uniform.known.raced:
            uniform.known.raced = Raced(where, 0.0)

    return Drawn(uniform.draws, (*uniform.known.site, "among", len(found)), uniform.draw, law, settle)


class Crossing(NamedTuple):
    """Rows of bools: whether the numbers that ``lookups`` count bounds below are above each bound."""

    lookups: tuple[Drawn, ...]
    """One for each row."""
    ranks: Any
    """``[rows, bounds]``: how many bounds of the row are before each one."""
    shape: tuple[int, ...]
    above: bool
    """Whether True means that the number is at or above the bound."""

    def elements(self) -> Any:
        """Return all bools as an object array of 0 and 1; the numbers are drawn."""
        below = self.ranks < np.array([drawn.value() for drawn in self.lookups])[:, None]
        return (below == self.above).astype(int).astype(object).reshape(self.shape)

    def turned(self) -> Crossing:
        """Return the opposite answers."""
        return self._replace(above=not self.above)

    def totals(self) -> list[Wide]:
        """Return how many of each row are True."""
        count = self.ranks.shape[1]
        numbers = np.arange(count + 1) if self.above else count - np.arange(count + 1)
        return [Wide(drawn, numbers) for drawn in self.lookups]

    def firsts(self) -> list[Wide]:
        """Return the place of the first True of each row, and 0 where there is none."""
        return [
            Wide(drawn, _firsts(ranks, above=self.above)) for drawn, ranks in zip(self.lookups, self.ranks, strict=True)
        ]


def crossing(values: list[Continuous], bounds: Any, shape: tuple[int, ...], *, above: bool) -> Crossing:
    """Return the comparison of a number for each row with the row of ``bounds`` ``[rows, bounds]``."""
    order = np.argsort(bounds, axis=-1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), -1)
    rows = np.take_along_axis(np.asarray(bounds, dtype=np.float64), order, -1)
    return Crossing(tuple(lookup(value, row) for value, row in zip(values, rows, strict=True)), ranks, shape, above)


def _firsts(ranks: Any, *, above: bool) -> Any:
    """Return the place of the first True for each number of bounds below, and 0 where there is none."""
    order = np.argsort(ranks, kind="stable")
    if above:
        return np.concatenate([[0], np.minimum.accumulate(order)])
    return np.concatenate([np.minimum.accumulate(order[::-1])[::-1], [0]])
