"""The second race of clocks that have raced: the same noise, other weights.

Let clocks race at rates w, and a be the first to ring, at T, an exponential time of rate W, the sum of w. Of another
clock j its noise is then ``w_j T`` and a fresh exponential E. At other rates m it starts at ``c_j T`` with
``c_j = w_j / m_j``, and a, which rings first of all in the race before, rings at ``c_a T`` for certain. No clock has
rung until ``x T`` with probability ``exp(-T h(x))``, ``h(x)`` being the sum of ``m_j (x - c_j)`` over the clocks with
``c_j < x``, so b rings first with probability ``m_b`` times the integral of ``W / (W + h(x))^2`` from c_b to c_a.
Between two starts h is linear, and that of its piece is ``W (x' - x) / (W + h) (W + h')``.

This is what a draft and a target, or a draft and what replaces it, have in common where one seed makes the noise of a
position, as in Gumbel coupling.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf  # by name: inside a block ``math`` has others
from typing import Any

from numpy import array  # by name: inside a block NumPy has another

from specverify.intercept.unknowns.order import Runner


def law_of_second(before: Sequence[float], after: Sequence[float], total: float, first: int | None) -> Any:
    """Return the probability of each clock to ring first in a second race.

    ``before`` are rates of the first race, 0 where a clock took no part, ``after`` those of the second, all above 0.
    ``total`` is the sum of the first ones, over clocks too that take no part in the second. ``first`` is the clock
    that was first then; None if it takes no part now.
    """
    starts = [rate / again for rate, again in zip(before, after, strict=True)]
    end = inf if first is None else starts[first]
    others = [place for place in range(len(starts)) if place != first and starts[place] < end]
    moments = [*sorted({starts[place] for place in others}), end]
    masses, waited = [0.0] * len(starts), total
    for begin, over in pairwise(moments):
        running = [place for place in others if starts[place] <= begin]
        slope = sum(after[place] for place in running)
        later = waited + slope * (over - begin)
        share = total / (slope * waited) if over == inf else total * (over - begin) / (waited * later)
        for place in running:
            masses[place] += after[place] * share
        waited = later
    if first is not None:
        masses[first] = total / waited
    return array(masses)


def star_of(runners: Sequence[Runner]) -> Runner | None:
    """Return the clock that is known to have rung before others of these; None unless that is all that is known."""
    roots = {runner.root(): None for runner in runners if runner.after is not None or runner.behind}
    if len(roots) != 1:
        return None
    (root,) = roots
    return None if root.told or any(runner.behind for runner in root.behind) else root
