"""Clocks that ring one after the other, and what is known of their order.

Each rings at a rate of its own. What is known is a forest: a clock has rung before those behind it. Given that, each
tree rings first at the rates of all its clocks together, and once its root has rung, what is behind it goes on as if
nothing had been known. So every question about the order is answered by a few draws, and nothing is drawn that was
answered before: who is first of some, who is next, who is first of all when the first of each block is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from numpy import array  # by name: inside a block NumPy has another

ALIKE = 1e-6
"""Rates as near as this, relative to each other, are the same one, computed twice in float32."""


class Runner:
    """A clock, and its place in the forest."""

    __slots__ = ("after", "behind", "flipped", "rate", "told")

    def __init__(self, rate: float, *, flipped: bool = False) -> None:
        """Nothing is known of when it rings; ``flipped`` says that it is the clock of 1 - u."""
        self.rate, self.flipped = rate, flipped
        self.after: Runner | None = None
        """The clock that is known to ring before it."""
        self.behind: list[Runner] = []
        self.told = False
        """Whether more than the order is known of its tree: a uniform number of it was compared with a number."""

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
            rates = array([sum(each.rate for each in runner.all_behind()) for runner in front])
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


# What an order tells of uniform numbers


class Place(NamedTuple):
    """The place of a uniform number among several that are ordered and of which nothing else is known."""

    smaller: int
    number: int
    """How many there are."""


def alike(runner: Runner) -> bool:
    """Return whether all clocks of a tree have one rate, so that their order is that of their uniform numbers."""
    return all((each.rate, each.flipped) == (runner.rate, runner.flipped) for each in runner.root().all_behind())


def place_of(runner: Runner) -> Place | None:
    """Return the place of a clock's uniform number; None where it is not known, and of clocks that are not alike.

    A clock that rings is the largest of the uniform numbers that are left, of 1 - u the smallest. All others being
    behind it, what has rung before is known. Which of them came where is independent of the values in their order.
    """
    root = runner.root()
    number, later = len(list(root.all_behind())), len(list(runner.all_behind())) - 1
    above = runner.after
    while above is not None and len(above.behind) == 1:
        above = above.after
    if above is not None or not alike(root):
        return None
    return Place(number - 1 - later if runner.flipped else later, number)


@lru_cache(maxsize=1 << 12)
def share_below(place: Place, bound: float) -> float:
    """Return the probability that a uniform number at a place is below ``bound``: at least so many of all are."""
    ways = range(place.smaller + 1, place.number + 1)
    return sum(math.comb(place.number, k) * bound**k * (1 - bound) ** (place.number - k) for k in ways)
