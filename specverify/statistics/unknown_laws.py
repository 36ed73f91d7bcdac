"""Anytime evidence where no law is known: that two samplers differ, or that two variables are dependent.

*Two samplers.* Let x be an outcome of one sampler and y an outcome of the other. Let a and b be estimates of their two
laws, made from earlier batches, and ``m = (a + b) / 2``. Then ``a(x) b(y) / (m(x) m(y))`` is an e-value against the
hypothesis that both samplers have one law, whatever that law is: with ``r = a / m`` and ``b / m = 2 - r`` its mean is
``E r (2 - E r) <= 1`` (Turner, Ly and Gruenwald, "Generic e-variables for exact sequential k-sample tests that allow
for optional stopping", arXiv 2106.02693). The e-values of all pairs of a batch, and of all batches, are multiplied; the
product is a supermartingale.

*Dependence.* Let (x, y) and (x', y') be two couples, independent of each other. If x and y of a couple are independent
too, the couples (x, y') and (x', y) are as likely as the observed ones. Let f be an estimate of the joint law, made
from earlier batches. Then ``2 f(x, y) f(x', y') / (f(x, y) f(x', y') + f(x, y') f(x', y))`` is an e-value against
independence, whatever the laws of x and y are: its mean over the two arrangements is 1.

*Shrinkage.* An estimate is the empirical law, shrunk with weight s towards an estimate that satisfies the hypothesis:
the pooled law of both samplers, or the product of the laws of x and y. The e-value is the mean over several s. In the
first batch there is no estimate of the two samplers, so the e-values are 1. For dependence a second target is used
too: the law in which half of the couples have two equal values.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import numpy as np

from specverify.statistics.e_processes import Array, log_mean

SHRINKAGES: Final = (10.0, 100.0, 1e3, 1e4, 1e5)
"""Numbers of pseudo-samples of the null law in the estimate of the alternative, ``[s]``."""
NOTHING_YET: Final = np.zeros(len(SHRINKAGES))
"""``[s]``: log-evidence before the first batch, one entry for each shrinkage."""
NO_COUPLES_YET: Final = np.zeros(2 * len(SHRINKAGES))
"""``[2 s]``: log-evidence for dependence before the first batch."""


def two_sample_gains(past_first: Any, past_second: Any, first: Any, second: Any) -> Array:
    """Return by how much one batch increases log e-values against the hypothesis that two samplers have one law.

    Args:
        past_first: Counts ``[..., k]`` of the first sampler in earlier batches; leading axes hold separate comparisons.
        past_second: Those of the second sampler.
        first: Counts ``[..., k]`` of the first sampler in this batch.
        second: Those of the second sampler.

    Returns:
        ``[s, ...]``, one increase for each of the s numbers in ``SHRINKAGES``, by which the two estimated laws are
        moved towards their mean. Outcomes without a count in earlier batches add nothing.

    Raises:
        ValueError: If the sums of ``first`` and ``second`` differ.
    """
    ours, theirs, a, b = (np.asarray(item, dtype=np.float64) for item in (past_first, past_second, first, second))
    if not np.array_equal(a.sum(axis=-1), b.sum(axis=-1)):
        raise ValueError("the two parts of a batch differ in size, expected as many samples of each")
    numbers = np.maximum(ours.sum(axis=-1, keepdims=True), 1), np.maximum(theirs.sum(axis=-1, keepdims=True), 1)
    shares = ours / numbers[0], theirs / numbers[1]
    pooled = (shares[0] + shares[1]) / 2
    gains = []
    for weight in SHRINKAGES:
        kept = [number / (number + weight) for number in numbers]
        one, other = (keep * share + (1 - keep) * pooled for keep, share in zip(kept, shares, strict=True))
        middle = (one + other) / 2
        known = middle > 0
        ratio = np.divide(one, middle, out=np.ones_like(middle), where=known)
        gains.append((a * _logarithm(ratio, a) + b * _logarithm(2 - ratio, b)).sum(axis=-1))
    return np.array(gains)


def dependence_gains(past: Any, left: Any, right: Any) -> Array:
    """Return by how much one batch increases the log e-values against the independence of two variables.

    Args:
        past: Counts ``[k, k]`` of earlier couples, of one value of each variable.
        left: Values of the first variable in this batch, ``[2 m]`` integers below k.
        right: Values of the second variable; couples 2i and 2i + 1 are compared with each other.

    Returns:
        ``[2 s]``, two for each of s shrinkages: towards the product of the marginal laws, then towards the law in which
        half of the couples have two equal values.

    Raises:
        ValueError: For an odd number of couples.
    """
    counts, x, y = np.asarray(past, dtype=np.float64), np.asarray(left), np.asarray(right)
    if x.shape != y.shape or x.ndim != 1 or len(x) % 2:
        raise ValueError(f"couples have shapes {x.shape} and {y.shape}, expected one even number of each")
    number = counts.sum()
    rows, columns = counts.sum(axis=1) + 0.5, counts.sum(axis=0) + 0.5
    product = np.outer(rows / rows.sum(), columns / columns.sum())
    copies = (product + np.diag(rows / rows.sum())) / 2
    gains = []
    for weight, guess in itertools.product(SHRINKAGES, (product, copies)):
        joint = np.log((counts + weight * guess) / (number + weight))
        straight = joint[x[::2], y[::2]] + joint[x[1::2], y[1::2]]
        crossed = joint[x[::2], y[1::2]] + joint[x[1::2], y[::2]]
        gains.append(float((np.log(2) + straight - np.logaddexp(straight, crossed)).sum()))
    return np.array(gains)


def evidence(logarithms: Any) -> Any:
    """Return the logarithm of the mean of s e-values on the same samples.

    The e-values differ in how far their estimates are shrunk (see the module). ``logarithms`` ``[s, ...]`` are their
    logarithms; the first axis is that of the s shrinkages.
    """
    return log_mean(logarithms)


def _logarithm(ratio: Array, counts: Array) -> Array:
    """Return log(ratio) where ``counts`` is positive, 0 elsewhere, so that a ratio 0/0 has no effect."""
    return np.log(np.where(counts > 0, ratio, 1.0))
