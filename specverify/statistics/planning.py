"""The power of Pearson's chi-square test: the total variation that a number of samples detects, and the inverse.

Write p for the null law on ``cells`` cells, p' for the true law, n for the number of samples. The statistic is ``sum
(count - n p)^2 / (n p)``. Under p it tends to a chi-square with ``cells - 1`` degrees of freedom, under p' to a
noncentral one with noncentrality ``lambda = n sum (p' - p)^2 / p`` (Patnaik 1949; Cressie and Read 1984).

Which laws are the hardest to detect? By Cauchy-Schwarz, with ``2 TV = sum |p' - p| = sum (|p' - p| / sqrt p) sqrt p``,

    (2 TV)^2 <= sum (p' - p)^2 / p * sum p = lambda / n,    hence    lambda >= 4 n TV^2,

with equality when ``|p' - p| / p`` is constant and the cells that gain weigh 1/2. The power increases with lambda, so a
test that rejects noncentrality ``lambda*`` with probability ``1 - miss`` rejects every law at total variation at least
``sqrt(lambda* / (4 n))`` with at least that probability.

The result also holds for laws with outcomes outside the support of p, if one sample of such an outcome refutes. Let
these outcomes have probability u, and write v for the total variation between p and p' conditioned on the support: ``TV
<= u + (1 - u) v``. All n samples are supported and the statistic stays small with probability ``(1 - u)^n M(4 n v^2)``,
M(lambda) being the noncentral cdf at the critical value. M is a Poisson(lambda / 2) mixture, so ``d log M / d lambda >=
-1/2``; along ``u + (1 - u) v = TV`` the logarithm of the product has derivative at most ``n (4 v (1 - v) - 1) / (1 - u)
<= 0`` in u. Moving the deviation off the support only makes it easier to detect.

Everything here is asymptotic in n; ``specverify.statistics.calibration`` states the error of the declared level.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from specverify.base.arguments import check_count, check_probability


def detectable_tv(samples: int, cells: int, false_alarm: float, miss: float) -> float:
    """Return the smallest d such that every law at a total variation of at least d from the null is detected.

    Args:
        samples: Number of independent samples.
        cells: Number of cells; with one, the result is 1.0: only outcomes of probability zero are detected.
        false_alarm: Level of the test.
        miss: A law is detected if the test rejects it with probability at least ``1 - miss``.

    Raises:
        ValueError: For counts below 1, and for probabilities outside (0, 1) or adding up to 1 or more.
    """
    check_count(samples, "samples")
    check_plan(cells, false_alarm, miss)
    if cells == 1:
        return 1.0
    return min(1.0, math.sqrt(noncentrality_needed(cells, false_alarm, miss) / (4 * samples)))


def samples_needed(tv: float, cells: int, false_alarm: float, miss: float) -> int:
    """Return the smallest number of samples at which ``detectable_tv`` is at most ``tv``, in (0, 1).

    The other parameters are those of ``detectable_tv``. Raises ``ValueError`` for arguments that it rejects, and for
    one cell.
    """
    check_probability(tv, "tv")
    check_plan(cells, false_alarm, miss)
    if cells == 1:
        raise ValueError(f"one cell cannot show a total variation of {tv}, expected at least 2 cells")
    return math.ceil(Fraction(noncentrality_needed(cells, false_alarm, miss)) / (4 * Fraction(tv) ** 2))


def noncentrality_needed(cells: int, false_alarm: float, miss: float) -> float:
    """Return ``lambda*``, the noncentrality that the test on ``cells`` cells misses with probability ``miss``.

    ``false_alarm`` is the level of the test.
    """
    check_plan(cells, false_alarm, miss)
    check_count(cells, "cells", least=2)
    return _noncentrality_needed(cells, false_alarm, miss)


@lru_cache(maxsize=4096)
def _noncentrality_needed(cells: int, false_alarm: float, miss: float) -> float:
    from scipy.stats import chi2  # noqa: PLC0415 - half a second, and only where something is sampled

    return noncentrality_beyond(float(chi2.isf(false_alarm, cells - 1)), cells - 1, miss)


def noncentrality_beyond(critical: float, freedom: int, miss: float) -> float:
    """Return the noncentrality at which a chi-square is at most ``critical`` with probability ``miss``.

    The result is 0 if already the central chi-square has at most this probability. ``freedom`` is the number of degrees
    of freedom.
    """
    from scipy.optimize import brentq  # noqa: PLC0415 - half a second, and only where something is sampled
    from scipy.stats import ncx2  # noqa: PLC0415 - as above

    def excess(noncentrality: float) -> float:
        return float(ncx2.cdf(critical, freedom, noncentrality)) - miss

    upper = math.sqrt(2 * freedom)
    while excess(upper) > 0:
        upper *= 2
    return float(brentq(excess, 0.0, upper, maxiter=500)) if excess(0.0) > 0 else 0.0


def check_plan(cells: int, false_alarm: float, miss: float) -> None:
    """Raise ``ValueError`` unless ``cells``, ``false_alarm`` and ``miss`` describe a useful test.

    Its power ``1 - miss`` must exceed ``false_alarm``.
    """
    check_count(cells, "cells")
    check_probability(false_alarm, "false_alarm")
    check_probability(miss, "miss")
    if false_alarm + miss >= 1:
        raise ValueError(
            f"false_alarm + miss is {false_alarm + miss}, expected less than 1: a coin that ignores the samples does it"
        )
