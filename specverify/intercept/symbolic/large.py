"""Outcomes among very many that nobody has looked at: what is asked of one divides its outcomes, and draws a coin.

A draw from a real vocabulary has too many outcomes for a run of each. While it is carried to the answer of a call, it
stays open: it is compared, chosen, shifted, looked up in a table or converted for all its outcomes at once, and its law
is read off at the end as one vector. Only where its number itself is needed is it drawn, as one outcome among many.

All of this is inside ``at_large``: elsewhere every outcome is followed.

A uniform number among very many bounds: an inverse CDF over a real vocabulary, as one draw that stays open.

``Lookup`` is the number of bounds at or below it. ``Crossing`` is what a comparison with all of them gives, an array of
bools that are decided together: the sum of it, or the place of its first True, is the same draw.

How many random numbers, or outcomes, one call may have: checked before anything of that size is built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.audit import Draw, Raced, place
from specverify.intercept.refusals import NeedsValue, RuleDeclined
from specverify.intercept.run import mode, mode_with
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.deferred import Deferred, known
from specverify.intercept.symbolic.uniform import look, refusal
from specverify.intercept.symbolic.vectors import Steps, back
from specverify.laws import rounding
from specverify.laws.call_paths import FEW
from specverify.reference import Draws, Site

# Wide


MANY = 256
"""More random numbers than this are kept in arrays."""


@contextmanager
def at_large(*, short: bool = False) -> Iterator[None]:
    """Keep outcomes among many open inside the block; ``short`` if the rows of the call are floats of 16 bits."""
    with mode_with(large=True, short=short):
        yield


def large(count: int, few: int = FEW) -> bool:
    """Return whether so many outcomes, more than ``few``, are kept together."""
    return mode().large and count > few


def at_large_now() -> bool:
    """Return whether this is inside ``at_large``."""
    return mode().large


def continuous_in_16_bits() -> bool:
    """Return whether random numbers of 16 bits are taken to be continuous: where the rows that are given have no more.

    The rule of such a call is that of continuous numbers.
    """
    now = mode()
    return now.large and now.short


class Drawn:
    """One draw among many outcomes, and what is known of it."""

    def __init__(
        self,
        draws: Draws,
        site: Site,
        draw: Draw,
        law: Callable[[], Any],
        settle: Callable[[int | None], None] = lambda outcome: None,
    ) -> None:
        """``law()`` is its pmf ``[outcomes]``; ``settle(outcome)`` says that it was used, and what it is if known."""
        self._draws, self._site, self._draw, self._settle = draws, site, draw, settle
        self._law, self._asked = law, 0
        self._left: Any = None
        self.outcome: int | None = None

    def masses(self) -> Any:
        """Return the probability of each outcome, given what is known of it."""
        if self._left is None:
            look(self._draw)
            self._left = np.asarray(self._law(), dtype=np.float64)
            self._settle(None)
            rounding.drew(int(np.count_nonzero(self._left)))
        return self._left

    def among(self, outcomes: Any) -> bool:
        """Return whether it is one of ``outcomes`` ``[outcomes]`` of bools: a coin, unless it is known."""
        left = self.masses()
        inside = float(left[outcomes].sum())
        if self.outcome is not None or not inside > 0 or not left[~outcomes].any():
            return bool(inside > 0)
        self._asked += 1
        heads = np.array([inside, max(1.0 - inside, 0.0)])
        result = self._draws.categorical(heads / heads.sum(), (*self._site, "asked", self._asked)) == 0
        kept = np.where(outcomes if result else ~outcomes, left, 0.0)
        self._left = kept / kept.sum()
        return bool(result)

    def value(self) -> int:
        """Return the outcome, drawn among those that are left."""
        if self.outcome is None:
            self.outcome = self._draws.categorical(self.masses(), self._site)
            self._settle(self.outcome)
            self._left = np.zeros_like(self.masses())
            self._left[self.outcome] = 1.0
        return self.outcome


class Wide(Deferred):
    """A number that is known for every outcome of one draw among many."""

    def __init__(self, drawn: Drawn, values: Any) -> None:
        """``values`` is an array ``[outcomes]``."""
        self.drawn, self.values = drawn, values
        super().__init__(lambda: values[drawn.value()].item())  # noqa: PLW0108 - it is drawn later

    @property
    def decided(self) -> bool:
        """Whether its outcome has been drawn."""
        return self.drawn.outcome is not None

    def below(self, bound: float) -> bool:
        """Return whether the number is below ``bound``."""
        return self.holds(lambda values: values < bound)

    def holds(self, question: Callable[[Any], Any]) -> bool:
        """Return whether ``question(values)``, an array of bools, is true of it."""
        return self.drawn.among(np.asarray(question(self.values), dtype=bool))

    def mapped(self, function: Callable[[Any], Any]) -> Wide:
        """Return the number that ``function`` makes of it; ``function`` takes an array of all values."""
        return Wide(self.drawn, np.asarray(function(self.values)))


class Selected(Deferred):
    """One of two elements, by a condition that nobody has looked at."""

    def __init__(self, condition: Any, one: Any, other: Any) -> None:
        """``one`` if ``condition`` is true."""
        self._condition, self._elements = condition, (one, other)
        super().__init__(lambda: known(self.resolved()))

    def resolved(self) -> Any:
        """Look at the condition and return the element that it chooses, looked at or not."""
        chosen = self._elements[0 if known(self._condition) else 1]
        return chosen.resolved() if isinstance(chosen, Selected) else chosen

    def below(self, bound: float) -> bool:
        """Return whether the chosen element is below ``bound``."""
        result = self.resolved()
        return bool(result.below(bound) if isinstance(result, Deferred) else result < bound)


def resolved(element: Any) -> Any:
    """Return an element with the conditions looked at that choose it; an outcome among many stays open."""
    result = element.resolved() if isinstance(element, Selected) else element
    return result if isinstance(result, Wide) and not result.decided else known(result)


# Lookups


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
    result, where = np.asarray(bounds, dtype=np.float64), place()
    if (np.diff(result) < 0).any() or np.isnan(result).any():
        raise NeedsValue("unsorted-bounds", "a random number is looked up in bounds that are not sorted")
    with np.errstate(all="ignore"):
        for step in reversed(value.steps):
            result = back(Steps(*step), result)
    uniform = value.uniform

    def law() -> Any:
        known = uniform.known
        if known.raced or known.together:
            raise NeedsValue("second-race", "a random number is looked up after a race, or after another lookup")
        ordered = result if value.increasing else result[::-1]
        edges = np.concatenate([[known.low], np.clip(ordered, known.low, known.high), [known.high]])
        masses = np.diff(edges) / (known.high - known.low)
        rounding.looked_up(int(np.count_nonzero(masses)))
        return masses if value.increasing else masses[::-1]

    def settle(_: int | None) -> None:
        if not uniform.known.raced:
            uniform.known.raced = Raced(where, 0.0)

    return Drawn(uniform.draws, (*uniform.known.site, "among", len(result)), uniform.draw, law, settle)


class Crossing(NamedTuple):
    """Rows of bools: whether the numbers that ``large`` count bounds below are above each bound."""

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


# Sizes


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
