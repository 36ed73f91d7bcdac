"""Uniform random numbers that have no value: they are compared with numbers, and each comparison is a draw.

A ``Uniform`` is never given a value. Each comparison is a coin whose probability is the share of the interval the
uniform is still known to lie in, and narrows that interval, so that comparing the same uniform twice gives the right,
correlated law. What may be done with one before it is compared: see ``continuous``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan  # by name: inside a block ``math`` has others
from typing import Any

import numpy as np
from numpy import array  # by name: inside a block NumPy has another

from specverify.intercept import audit
from specverify.intercept.audit import AnsweredQuestion, Cell, Draw, Raced
from specverify.intercept.block import NeedsValue
from specverify.intercept.caller import caller
from specverify.intercept.unknowns.formulas import Formula
from specverify.intercept.unknowns.order import Place, Runner, alike, place_of, share_below
from specverify.intercept.unknowns.together import Together
from specverify.intercept.unknowns.valued import note
from specverify.laws import rounding
from specverify.laws.draws import AMONG, BELOW, TOGETHER
from specverify.reference import Draws, Site

__all__ = ["Known", "NeedsValue", "Uniform", "look", "refusal"]

NEVER_DRAWN = 2.0**-54
"""Less probability than the smallest that a uniform of float64 can fall on. The two ends are tried apart."""


class Known:
    """What is known of a uniform number, in all draws that gave it: it lies in [low, high)."""

    def __init__(self, site: Site) -> None:
        """Nothing is known of the number drawn at ``site``."""
        self.site, self.asked = site, 0
        self.low, self.high = 0.0, 1.0
        self.raced: Raced | None = None
        """The last race it has taken part in, after which only its order among the others is known."""
        self.runner: Runner | None = None
        """Where it stands in that order; None for one whose race left nothing to go on with."""
        self.place: Place | None = None
        """Its place among several, once it was compared with a number."""
        self.together: Together | None = None
        """What is known of it together with others."""
        self.questions: list[AnsweredQuestion] = []
        """For the audit."""

    def share_below(self, bound: float) -> float:
        """Return the probability that it was below ``bound`` before it was compared with a number."""
        return bound if self.place is None else share_below(self.place, bound)


class Uniform:
    """A number drawn uniformly from [0, 1)."""

    def __init__(self, draws: Draws, site: Site, draw: Draw | None = None) -> None:
        """Every question is put to ``draws`` at ``site`` and the number of the question.

        ``draw`` says which state of a generator it is drawn from, if that is known.
        """
        self.draws, self.draw, self._site = draws, draw or Draw(site), site
        self._known: Known | None = None
        note(self)

    @property
    def known(self) -> Known:
        """What is known of it, in all draws that gave it; nothing until somebody asks."""
        if self._known is None:
            self._known = self.draw.shared(lambda: Known(self._site))
        return self._known

    @property
    def cut(self) -> bool:
        """Whether anything is known of it, by its own answers or those of another draw that gave the same number."""
        if self._known is None and not self.draw.made_before:
            return False
        return self.known.low > 0 or self.known.high < 1

    def below(self, bound: float, place: str = "") -> bool:
        """Return whether the uniform is below ``bound``, conditioned on all earlier answers.

        ``place`` is the line that compares, if it is not the one that is running.
        """
        if isnan(bound) or not 0 < bound < 1:
            return bound >= 1
        known = self.known
        look(self.draw)
        self._placed(place)
        low, at, high = map(known.share_below, (known.low, min(max(bound, known.low), known.high), known.high))
        width = high - low
        if at - low < NEVER_DRAWN * width or high - at < NEVER_DRAWN * width:
            audit.asked(known.questions, self.draw, (bound,), None, place)
            return at - low >= NEVER_DRAWN * width
        if known.together:
            answer = self._below_together(known.together, bound, place)
        else:
            answer = self._ask(BELOW, array([at - low, high - at]) / width) == 0
        cell = Cell(0, 0.0, bound) if answer else Cell(1, bound, 1.0)
        audit.asked(known.questions, self.draw, (bound,), cell, place)
        known.low, known.high = max(known.low, cell.low), min(known.high, cell.high)
        return answer

    def interval_of(self, bounds: Sequence[float], place: str = "") -> int:
        """Return how many of the non-decreasing ``bounds`` are at or below the uniform: an inverse-CDF lookup."""
        known = self.known
        look(self.draw)
        inside = [min(max(bound, known.low), known.high) for bound in bounds]
        self._placed(place)
        edges = np.array([known.low, *inside, known.high])
        masses = np.diff([*map(known.share_below, edges.tolist())])
        if (masses < 0).any():
            raise NeedsValue("unsorted-bounds", "a random number is looked up in bounds that are not sorted")
        if known.together:
            return next((number for number, bound in enumerate(bounds) if self.below(bound, place)), len(bounds))
        cells = np.count_nonzero(masses)
        drawn = cells > 1
        rounding.looked_up(int(cells))
        found = self._ask(AMONG, masses / masses.sum()) if drawn else int(masses.argmax())
        cell = Cell(found, float([0.0, *bounds][found]), float([*bounds, 1.0][found]))
        audit.asked(known.questions, self.draw, bounds, cell if drawn else None, place)
        known.low, known.high = float(edges[found]), float(edges[found + 1])
        return found

    def _placed(self, place: str) -> None:
        """Find out its place among those that it raced with, if it has; refuses one whose place is not known."""
        known, runner = self.known, self.known.runner
        if not known.raced or known.place is not None:
            return
        if runner is None or not alike(runner):
            audit.compared_after(self.draw, known.raced)
        known.place = None if runner is None or runner.told else place_of(runner)
        refusal = "random noise that has already decided a race is compared with a number"
        if runner is not None and known.place is not None:
            refusal = audit.placed(known.raced, known.place, place)
            for each in runner.root().all_behind():
                each.told = True
        if refusal:
            raise NeedsValue("second-race", refusal)

    def formula(self, place_of: Callable[[Known], int]) -> Formula:
        """Return it as a quantity that is made of several uniform numbers."""
        return Formula("uniform", (place_of(self.known),))

    def _below_together(self, together: Together, bound: float, place: str) -> bool:
        chance = together.chance(self, bound, or_equal=False)
        drawn = 0 < chance.middle < 1
        refusal = chance.refusal or audit.asked_together((self.draw.name,), (), others=True, drawn=drawn, where=place)
        if refusal:
            raise NeedsValue("compared-in-two-ways", refusal)
        rounding.known_within(chance.within)
        return self.coin(chance.middle) if drawn else chance.middle == 1

    def coin(self, chance: float) -> bool:
        """Return whether what is asked of it, and of others, is so."""
        return self._ask(TOGETHER, array([chance, 1 - chance])) == 0

    def _ask(self, question: str, pmf: Any) -> int:
        known = self.known
        known.asked += 1
        rounding.asked(again=known.asked > 1)
        return self.draws.categorical(pmf, (*known.site, question, known.asked))


def look(draw: Draw) -> None:
    """Say that a draw is looked at; refuses one that hangs together with another in a way that is not known."""
    refusal = draw.look()
    if refusal:
        raise NeedsValue("one-state-twice", refusal)


def refusal(code: str, reason: str, operation: str = "") -> NeedsValue:
    """Return a refusal of what the foreign code asks now: with its place."""
    return NeedsValue(code, reason, operation).at(caller())
