"""Races of the same noise with other weights: the law of the winner, given the winners of earlier races.

**Two races.** Let exponential clocks race at rates w, and let a be the first, at time T, exponential with rate W, the
sum of w. The noise of another clock j is then ``w_j T`` plus a fresh exponential E. At other rates m clock j starts at
``c_j T`` with ``c_j = w_j / m_j``, and a rings at ``c_a T`` with certainty. No clock has rung until ``x T`` with
probability ``exp(-T h(x))``, where ``h(x)`` is the sum of ``m_j (x - c_j)`` over the clocks with ``c_j < x``. So b is
first with probability ``m_b`` times the integral of ``W / (W + h(x))^2`` from c_b to c_a. Between two starts h is
linear, and the integral over the piece is ``W (x' - x) / (W + h) (W + h')``.

**Two clocks.** If only two clocks take part in all races, clock 0 is first at rates w if and only if U < w_0 / (w_0 +
w_1), where U = E_0 / (E_0 + E_1) is uniform. Each race then is a lookup of one uniform number, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from specverify.intercept.audit import Draw
from specverify.intercept.cpython.patches import array, inf
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.uniform import NEVER_DRAWN
from specverify.laws import rounding
from specverify.reference import Draws, Site


def law_of_second(before: Sequence[float], after: Sequence[float], total: float, first: int | None) -> Any:
    """Return the probability that each clock rings first in a second race of the same noise, an array ``[clocks]``.

    Args:
        before: Rates of these clocks in the first race (0: took no part).
        after: Their rates in the second race, all positive.
        total: Sum of all rates of the first race, also of clocks that are not in the second.
        first: Index of the clock that rang first in the first race; None if it is not in the second.
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


def race_again(draws: Draws, pmf: Any, site: Site, draw: Draw) -> int:
    """Return the outcome of ``draw``, the first clock of a race at rates ``pmf``, drawn by ``draws`` at ``site``.

    Other draws from the same generator state race the same noise at other rates; their winners determine the law. An
    example is ``torch.multinomial`` with a generator that is seeded again. Raises ``NeedsValue`` for a third race, if
    more than two clocks take part in all of them.
    """
    assert draw.origin is not None
    if np.count_nonzero(pmf) == 1:  # it is first whatever the noise is
        return draws.categorical(pmf, site)
    earlier = draw.origin.lookups.setdefault(draw.source, [])
    if not earlier:
        earlier.append((pmf, draws.categorical(pmf, site)))
        return earlier[0][1]
    law = law_of_winner_given(earlier, pmf)
    if law is None:
        raise NeedsValue("one-state-twice", f"{draw.name} draws three times from one state of its generator")
    rounding.count_comparison(again=True)
    law = np.where(law < NEVER_DRAWN, 0.0, law)
    outcome = draws.categorical(law / law.sum(), site)
    earlier.append((pmf, outcome))
    return outcome


def law_of_winner_given(earlier: Sequence[tuple[Any, int]], rates: Any) -> Any:
    """Return the law of the first clock of a race at ``rates``, an array ``[clocks]``; None if it is not known.

    ``earlier`` are the races of the same noise, at least one: pairs (rates, index of the first clock).
    """
    taking_part = np.flatnonzero(np.any([rates, *(before for before, _ in earlier)], axis=0))
    if len(taking_part) <= 2:
        return _law_of_two(earlier, rates, taking_part)
    if len(earlier) > 1:
        return None
    ((before, first),) = earlier
    again = np.flatnonzero(rates)
    place = int(np.flatnonzero(again == first)[0]) if rates[first] > 0 else None
    law = np.zeros(len(rates))
    law[again] = law_of_second(before[again].tolist(), rates[again].tolist(), float(before.sum()), place)
    return law


def _law_of_two(earlier: Sequence[tuple[Any, int]], rates: Any, clocks: Any) -> Any:
    """Return the law of the first of at most two ``clocks``, as ``law_of_winner_given`` does."""
    one, low, high = clocks[0], 0.0, 1.0
    for before, first in earlier:
        share = float(before[one] / before.sum())
        low, high = (low, min(high, share)) if first == one else (max(low, share), high)
    share = min(max(float(rates[one] / rates.sum()), low), high)
    law = np.zeros(len(rates))
    law[clocks[-1]] = (high - share) / (high - low)
    law[one] = 1.0 - law[clocks[-1]] if len(clocks) == 1 else (share - low) / (high - low)
    return law
