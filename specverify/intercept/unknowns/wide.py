"""Outcomes among very many that nobody has looked at: what is asked of one divides its outcomes, and draws a coin.

A draw from a real vocabulary has too many outcomes for a run of each. While it is carried to the answer of a call, it
stays open: it is compared, chosen, shifted, looked up in a table or converted for all its outcomes at once, and its law
is read off at the end as one vector. Only where its number itself is needed is it drawn, as one outcome among many.

All of this is inside ``at_large``: elsewhere every outcome is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from specverify.intercept.audit import Draw
from specverify.intercept.run import mode, mode_with
from specverify.intercept.unknowns.deferred import Deferred, known
from specverify.intercept.unknowns.uniform import look
from specverify.laws import rounding
from specverify.laws.call_paths import FEW
from specverify.reference import Draws, Site

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
        found = self._draws.categorical(heads / heads.sum(), (*self._site, "asked", self._asked)) == 0
        kept = np.where(outcomes if found else ~outcomes, left, 0.0)
        self._left = kept / kept.sum()
        return bool(found)

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
        found = self.resolved()
        return bool(found.below(bound) if isinstance(found, Deferred) else found < bound)


def resolved(element: Any) -> Any:
    """Return an element with the conditions looked at that choose it; an outcome among many stays open."""
    found = element.resolved() if isinstance(element, Selected) else element
    return found if isinstance(found, Wide) and not found.decided else known(found)
