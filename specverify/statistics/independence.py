"""Planned tests of contingency tables: whether two variables that were observed together are independent.

Write p_ij for the joint law, a_i and b_j for its marginals, n for the number of samples. The statistic ``sum (count -
expected)^2 / expected``, expected from the marginal counts, tends to a chi-square with ``(rows - 1) (columns - 1)``
degrees of freedom where p_ij = a_i b_j, and to a noncentral one with noncentrality ``n sum (p_ij - a_i b_j)^2 / (a_i
b_j)`` where not (Cramer 1946, chapter 30). By Cauchy-Schwarz that is at least ``4 n TV^2``, TV between the joint law
and the product of its marginals, as in ``specverify.statistics.planning``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from specverify.base.arguments import check_count, check_probability
from specverify.statistics.confirmation import FitVerdict, stage_level, stage_seeds
from specverify.statistics.planning import detectable_tv, samples_needed

FEWEST = 10
"""Smallest expected count of a cell at which the chi-squared approximation is used."""


class Contingency(NamedTuple):
    """The result of testing the independence of the two variables of one contingency table."""

    samples: int
    freedom: int
    """Degrees of freedom; 0 if one of the two variables is constant."""
    p_value: float
    tv_observed: float
    """Total variation between the table and the product of its marginals."""
    fewest: float
    """Smallest expected count of a cell."""


class Independence(NamedTuple):
    """A verdict on the independence of the two variables of one table, with the guarantees planned before it."""

    verdict: FitVerdict
    first: Contingency
    second: Contingency | None
    """The confirmation on fresh samples; None if the first stage was not suspicious."""
    detectable_tv: float
    """A dependence of total variation >= this is refuted with probability >= ``1 - miss``."""


Tables = Callable[[int, int], Mapping[str, Any]]
"""``tables(samples, seed)`` returns name -> contingency table of counts, with about ``samples`` samples each."""


def samples_of_tables(tv: float, freedom: int, false_alarm: float, miss: float) -> int:
    """Return the number of samples of one table with which a dependence of total variation ``tv`` is detected.

    ``freedom`` is the number of degrees of freedom of the table; ``false_alarm`` and ``miss`` are the error
    probabilities.
    """
    return samples_needed(tv, freedom + 1, stage_level(false_alarm), miss / 2)


def independences(
    tables: Tables, *, samples: int, false_alarm: float, miss: float, seed: int
) -> dict[str, Independence]:
    """Test the independence of every table, each at ``false_alarm`` and ``miss``; return the verdicts by name.

    ``tables(samples, seed)`` counts the tables from fresh samples, by name. An alarm is confirmed on four times as many
    fresh samples. A table is UNKNOWN:

    * if a variable never varies, or a cell has an expected count below ten;
    * if it is not refuted, and the test has too little power.
    """
    check_count(samples, "samples")
    check_probability(miss, "miss")
    level, (one, other, control) = stage_level(false_alarm), stage_seeds(seed)
    first = {name: contingency(table) for name, table in tables(samples, one).items()}
    again = tables(4 * samples, other) if any(result.p_value <= level for result in first.values()) else {}
    judged = {}
    for name, result in first.items():
        second = contingency(again[name]) if result.p_value <= level else None
        if result.freedom == 0 or result.fewest < FEWEST:
            judged[name] = Independence(FitVerdict.UNKNOWN, result, second, 1.0)
            continue
        detectable = detectable_tv(result.samples, result.freedom + 1, level, miss / 2)
        refuted = second is not None and second.p_value <= level
        able = detectable < 0.25 and contingency(_dependent(result, 2 * detectable, control)).p_value <= level
        verdict = FitVerdict.REFUTED if refuted else FitVerdict.FITS if able else FitVerdict.UNKNOWN
        judged[name] = Independence(verdict, result, second, detectable)
    return judged


def contingency(table: Any) -> Contingency:
    """Test a table of counts ``[rows, columns]`` for independence; empty rows and columns are left out."""
    from scipy.special import chdtrc  # noqa: PLC0415 - half a second, and only where something is sampled

    counts = np.asarray(table, dtype=np.float64)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    total = counts.sum()
    freedom = max(counts.shape[0] - 1, 0) * max(counts.shape[1] - 1, 0)
    if not freedom:
        return Contingency(int(total), 0, 1.0, 0.0, 0.0)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0, keepdims=True) / total
    statistic = float(((counts - expected) ** 2 / expected).sum())
    tv = float(np.abs(counts - expected).sum() / 2 / total)
    return Contingency(int(total), freedom, float(chdtrc(freedom, statistic)), tv, float(expected.min()))


def _dependent(found: Contingency, tv: float, seed: int) -> Any:
    """Return a sampled table ``[freedom + 1, 2]`` of two dependent variables, the negative control.

    The marginals are uniform. The total variation between the joint law and their product is ``tv``, or the largest
    possible one. ``found`` is the table whose degrees of freedom and number of samples are used, and ``seed`` the seed
    of the samples.
    """
    law = np.full((found.freedom + 1, 2), 1 / (2 * found.freedom + 2))
    half = law.shape[0] // 2
    sign = np.ones(law.shape[0])
    sign[:half], sign[half : 2 * half] = 1, -1
    sign[2 * half :] = 0
    share = min(tv / (half / law.shape[0]), 1.0)
    law = law * (1 + share * sign[:, None] * np.array([1, -1]))
    return np.random.default_rng(seed).multinomial(found.samples, law.ravel()).reshape(law.shape)
