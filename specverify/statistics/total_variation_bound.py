"""A bound on the total variation between the law of a sampler and an expected law, from the sampled frequencies.

The bound is valid for every number of samples (not only asymptotically), and needs no test.
"""

from __future__ import annotations

import math

from specverify.base.arguments import check_count, check_number, check_probability


def tv_certificate(tv_observed: float, samples: int, support_size: int, miss: float) -> float:
    """Return an upper bound on the total variation between the true law of a sampler and the expected law, the null.

    The bound is valid with probability at least ``1 - miss``, for every true law.

    Args:
        tv_observed: Total variation between the null and the empirical law.
        samples: Number of independent samples.
        support_size: Number of outcomes that the subject may emit; all of probability zero under the null count as one.
        miss: Probability that the bound is wrong.

    Raises:
        ValueError: For counts below 1, ``tv_observed`` outside [0, 1] or ``miss`` outside (0, 1).
    """
    check_count(samples, "samples")
    check_count(support_size, "support_size")
    check_probability(miss, "miss")
    check_number(tv_observed, "tv_observed", "a total variation between 0 and 1", lambda value: 0 <= value <= 1)
    # Write p' for the true law on k = support_size outcomes, and e for the empirical law of n = samples samples. Then
    # - TV(p', null) <= TV(e, null) + TV(e, p'), the triangle inequality;
    # - E TV(e, p') <= 1/2 sum sqrt(p' (1 - p') / n) <= 1/2 sqrt((k - 1) / n), by Jensen, then by Cauchy-Schwarz and
    #   sum p' (1 - p') <= 1 - 1/k;
    # - replacing one sample changes TV(e, p') by at most 1/n, so it exceeds its mean by sqrt(log(1 / miss) / (2 n))
    #   with probability at most miss (McDiarmid 1989).
    # Merging all outcomes of probability zero under the null leaves TV(p', null) and TV(e, null) as they are, so the
    # null's support plus one is always enough for k.
    expected = math.sqrt((support_size - 1) / samples) / 2
    fluctuation = math.sqrt(math.log(1 / miss) / (2 * samples))
    return min(1.0, tv_observed + expected + fluctuation)
