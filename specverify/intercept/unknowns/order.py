"""Clocks that ring one after the other, and what is known of their order.

Each rings at a rate of its own. What is known is a forest: a clock has rung before those behind it. Given that, each
tree rings first at the rates of all its clocks together, and once its root has rung, what is behind it goes on as if
nothing had been known. So every question about the order is answered by a few draws, and nothing is drawn that was
answered before: who is first of some, who is next, who is first of all when the first of each block is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

ALIKE = 1e-6
"""Rates as near as this, relative to each other, are the same one, computed twice in float32."""


class Runner:
    """A clock, and its place in the forest."""

    __slots__ = ("after", "behind", "flipped", "rate")

    def __init__(self, rate: float, *, flipped: bool = False) -> None:
        """Nothing is known of when it rings; ``flipped`` says that it is the clock of 1 - u."""
        self.rate, self.flipped = rate, flipped
        self.after: Runner | None = None
        """The clock that is known to ring before it."""
        self.behind: list[Runner] = []

    def all_behind(self) -> Iterator[Runner]:
        """Yield it and every clock behind it."""
        yield self
        for runner in self.behind:
            yield from runner.all_behind()

    def root(self) -> Runner:
        """Return the first clock of its tree."""
        return self if self.after is None else self.after.root()

    def put_behind(self, other: Runner) -> None:
        """Know from now on that ``other`` rings before it."""
        if self.after is not None:
            self.after.behind.remove(self)
        self.after = other
        other.behind.append(self)


def first_of(wanted: Sequence[Runner], draw: Callable[[Any], int]) -> Runner:
    """Return the clock that rings first of those that are wanted; ``draw(pmf)`` draws what is not known yet."""
    front = list(dict.fromkeys(runner.root() for runner in wanted))
    while True:
        first = front[0]
        if len(front) > 1:
            rates = np.array([sum(each.rate for each in runner.all_behind()) for runner in front])
            first = front[draw(rates / rates.sum())]
            for runner in front:
                if runner is not first:
                    runner.put_behind(first)
        if first in wanted:
            return first
        front = [runner for runner in first.behind if any(each in wanted for each in runner.all_behind())]


def agreed(runners: Sequence[Runner], rates: Sequence[float]) -> bool:
    """Give clocks these rates; False, and nothing is done, if that is more than another unit of time in some tree."""
    units: dict[Runner, float] = {}
    for runner, rate in zip(runners, rates, strict=True):
        unit = units.setdefault(runner.root(), rate / runner.rate)
        if not math.isclose(unit, rate / runner.rate, rel_tol=ALIKE):
            return False
    for root, unit in units.items():
        for runner in root.all_behind() if unit != 1 else ():
            runner.rate *= unit
    return True
