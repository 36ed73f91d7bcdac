"""The error of Pearson's test against its declared level at finite counts, and the level that compensates for it.

The test takes its critical value from the chi-square distribution. The tail of this distribution is too light: a cell
that expects few samples has the skewed tail of a Poisson count. So the *size* of the test, the probability that it
rejects a correct sampler, can exceed the declared level. The hardest laws known have two cells: a rare one that expects
``minimum_expected`` samples or a little more, and a heavy one. The statistic is then ``(N - e)^2 / e`` with N Poisson
of mean e, so the size is computed without simulation.

The table shows the largest size divided by the declared level, rounded up. It was computed by exact sums over these
laws, over two-cell laws of any proportion, and over laws with up to 1000 rare cells that expect ``minimum_expected``
samples each:

    minimum_expected    1e-2    1e-3    1e-4    1e-5    1e-6
                  10     1.5     2.5     5.3    12.4      29
                  40     1.3     1.5     2.2     3.7     6.4
                 100     1.2     1.3     1.6     2.1     3.1

A test at the level ``calibrated_level(level)`` rejects samplers of these laws with probability at most ``level``, if
``level`` is at most 1e-3. For larger levels there is an exception: two-cell laws with nearly equal cells, whose
statistic has few possible values. The test rejects these laws with a probability above ``level``: by at most 5 percent
at 1e-2, and by at most 16 percent at larger levels.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from specverify.base.arguments import check_positive, check_probability


def calibrated_level(level: float, minimum_expected: float = 10.0) -> float:
    """Return the nominal level at which a correct sampler is rejected with probability at most ``level``.

    The correction is that of the hardest law known (see the module). ``minimum_expected`` is the smallest expected
    count of a cell. The result is at most ``level``. Raises ``ValueError`` for a level outside (0, 1).
    """
    check_probability(level, "level")
    check_positive(minimum_expected, "minimum_expected", "samples")
    return _calibrated_level(level, minimum_expected)


@lru_cache(maxsize=4096)
def _calibrated_level(level: float, minimum_expected: float) -> float:
    from scipy.stats import chi2  # noqa: PLC0415 - half a second, and only where something is sampled

    low = high = float(chi2.isf(level, 1))
    while rare_cell_size(high, minimum_expected) > level:
        low, high = high, high * 1.5
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if rare_cell_size(middle, minimum_expected) > level else (low, middle)
    return min(level, float(chi2.sf(high, 1)))


def rare_cell_size(critical: float, minimum_expected: float) -> float:
    """Return the largest P((N - e)^2 / e >= critical) over Poisson counts N with mean ``e >= minimum_expected``."""
    from scipy.stats import poisson  # noqa: PLC0415 - half a second, and only where something is sampled

    # Both tails are rejected at integer thresholds, so between two thresholds the upper tail grows with e and the
    # lower one falls. The maximum is therefore at ``minimum_expected``, or at an e for which a threshold is exactly an
    # integer. The first 64 such values for each tail are tried; for larger e the probability approaches that of the
    # chi-square limit.
    root = math.sqrt(critical)
    reach = root * math.sqrt(minimum_expected)
    above = np.ceil(minimum_expected + reach) + np.arange(64)
    below = max(math.floor(minimum_expected - reach), 0) + np.arange(64)
    means = np.concatenate(
        [((np.sqrt(critical + 4 * above) - root) / 2) ** 2, ((np.sqrt(critical + 4 * below) + root) / 2) ** 2]
    )
    means = np.append(means[means >= minimum_expected], minimum_expected)
    rounding = 1e-9 * means
    upper = np.ceil(means + root * np.sqrt(means) - rounding)
    lower = np.floor(means - root * np.sqrt(means) + rounding)
    return float(np.max(poisson.sf(upper - 1, means) + poisson.cdf(lower, means)))
