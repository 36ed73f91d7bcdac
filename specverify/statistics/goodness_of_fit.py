"""Pearson's chi-square test of sampled outcomes against an exact law, and the deviations that it detects.

Limit: outcomes too rare for a cell of their own are pooled, and the test does not detect mass that only moves within
the pooled cell. The undetected part is bounded. Write A for the pooled cell, a and a' for its mass under the null p and
the true law p'. Then

    sum over A of |p' - p| = a + a' - 2 sum over A of min(p, p') <= a + a' = |a' - a| + 2 min(a, a'),

Every other cell has one outcome, so it contributes equally to the total variation on the partition and to that on the
outcomes. Therefore

    TV(p', p) <= TV on the partition + min(a, a') <= TV on the partition + pooled_mass.

Every law at TV at least ``detectable_tv(...) + pooled_mass`` from the null is therefore at least ``detectable_tv(...)``
away on the partition, and detected. A run may claim this sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from specverify.base.arguments import argument_error, check_count, check_probability
from specverify.statistics.planning import check_plan, detectable_tv
from specverify.statistics.pooling import Counts, Partition, Probabilities, partition

MOST_SAMPLES: Final = 10**12
"""Upper limit of a sample, more than a device draws in a day (a kernel draws a few 1e9 an hour)."""


class GoodnessOfFit(NamedTuple):
    """The result of Pearson's test of one sample against a law."""

    samples: int
    cells: int
    """Number of cells tested, after pooling."""
    pooled_cells: int
    """Number of outcomes in the pooled cell."""
    pooled_mass: float
    """Probability of the pooled cell under the law."""
    statistic: float
    p_value: float
    tv_observed: float
    """Total variation between the empirical law and the expected one, over the outcomes before pooling."""
    unsupported: tuple[Any, ...]
    """Observed outcomes of probability 0 under the law."""


def goodness_of_fit(counts: Counts, law: Probabilities, minimum_expected: float = 10.0) -> GoodnessOfFit:
    """Test ``counts`` against ``law``.

    The p-value is that of the chi-square limit, which is too small; ``calibrated_level`` corrects for this.

    Args:
        counts: Outcome -> number of times observed.
        law: Outcome -> probability.
        minimum_expected: Smallest expected count of a cell.

    Returns:
        The result. An observed outcome of probability zero makes the statistic infinite and the p-value 0.
        Otherwise, with one cell, they are 0 and 1.

    Raises:
        ValueError: If there is no sample, a count is negative or fractional, or ``law`` is no probability law.
    """
    from scipy.special import chdtrc  # noqa: PLC0415 - half a second, and only where something is sampled

    observed = observed_counts(counts)
    samples = sum(observed.values())
    if samples == 0:
        raise ValueError("the counts hold no sample, expected at least one")
    cells = partition(law, samples, minimum_expected)
    unsupported = tuple(x for x in observed if x not in cells.separate and x not in cells.pooled)
    statistic = math.inf if unsupported else pearson_statistic(observed, cells, samples)
    return GoodnessOfFit(
        samples=samples,
        cells=cells.cells,
        pooled_cells=len(cells.pooled),
        pooled_mass=cells.pooled_mass,
        statistic=statistic,
        p_value=float(chdtrc(cells.cells - 1, statistic)) if cells.cells > 1 else float(not unsupported),
        tv_observed=observed_tv(observed, cells, samples),
        unsupported=unsupported,
    )


def detectable_total_variation(
    law: Probabilities, samples: int, false_alarm: float, miss: float, minimum_expected: float = 10.0
) -> float:
    """Return the total variation from ``law`` that ``goodness_of_fit`` detects with ``samples`` samples.

    Every law at least this far away is rejected at level ``false_alarm`` with probability at least ``1 - miss``. The
    value is planned: it does not depend on the samples themselves. It is at most 1; for a law with one outcome it is
    exact. ``minimum_expected`` is the smallest expected count of a cell of the test. Raises ``ValueError`` for
    arguments that ``partition`` or ``detectable_tv`` reject.
    """
    cells = partition(law, samples, minimum_expected)
    check_plan(cells.cells, false_alarm, miss)
    if cells.cells == 1 and not cells.pooled:
        return -math.expm1(math.log(miss) / samples)
    return min(1.0, detectable_tv(samples, cells.cells, false_alarm, miss) + cells.pooled_mass)


def samples_for(law: Probabilities, tv: float, false_alarm: float, miss: float, minimum_expected: float = 10.0) -> int:
    """Return a number of samples at which ``detectable_total_variation`` is at most ``tv``, found by bisection.

    The other parameters are those of that function. One sample fewer is not enough, but a much smaller number may be,
    because the cells change with the number of samples. Raises ``ValueError`` if 10**12 samples are not enough.
    """
    check_probability(tv, "tv")

    def enough(samples: int) -> bool:
        return detectable_total_variation(law, samples, false_alarm, miss, minimum_expected) <= tv

    short, long = 0, 1
    while not enough(long):
        if long == MOST_SAMPLES:
            raise ValueError(f"{MOST_SAMPLES} samples do not detect a total variation of {tv}, expected a larger tv")
        short, long = long, min(2 * long, MOST_SAMPLES)
    while long - short > 1:
        middle = (short + long) // 2
        short, long = (short, middle) if enough(middle) else (middle, long)
    return long


def observed_counts(counts: Counts) -> dict[Any, int]:
    """Return the positive counts as integers; raises ``ValueError`` for a negative or fractional one."""
    if not isinstance(counts, Mapping):
        raise argument_error("the counts", counts, "a mapping from outcomes to how often each was observed")
    for outcome, count in counts.items():
        check_count(count, f"the count of {outcome!r}", least=0)
    return {outcome: int(count) for outcome, count in counts.items() if count > 0}


def pearson_statistic(observed: dict[Any, int], cells: Partition, samples: int) -> float:
    """Return Pearson's statistic, the sum of ``(count - expected)^2 / expected`` over the cells.

    ``observed`` are the counts of outcomes of positive probability only, ``samples`` is their sum.
    """
    pairs = [(observed.get(outcome, 0), mass) for outcome, mass in cells.separate.items()]
    if cells.pooled:
        pairs.append((sum(observed.get(outcome, 0) for outcome in cells.pooled), cells.pooled_mass))
    return math.fsum((count - samples * mass) ** 2 / (samples * mass) for count, mass in pairs)


def observed_tv(observed: dict[Any, int], cells: Partition, samples: int) -> float:
    """Return the total variation between the empirical law of ``observed`` and the law of ``cells``.

    ``observed`` are counts of outcomes, and ``samples`` is their sum.
    """
    supported = cells.separate | cells.pooled
    return math.fsum(max(mass - observed.get(outcome, 0) / samples, 0.0) for outcome, mass in supported.items())
