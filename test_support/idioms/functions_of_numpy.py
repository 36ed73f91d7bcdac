"""Functions of NumPy that get random numbers one by one or in lists, or that use their order."""

from __future__ import annotations

import random

import numpy as np

from test_support.idioms.idiom import coin, count, token
from test_support.idioms.tokens_of_numpy import _alias

RNG = np.random.default_rng(0)


def _below_of_middle(keep):
    """Return the value that the middle one of three uniforms is below with probability ``keep``."""
    return 0.5 - np.sin(np.arcsin(1 - 2 * keep) / 3)


@coin("NumPy", wrong=("u > 0, u, 1e-300", "u > 0.5, u, 1e-300"))
def logarithm_of_where(p, q):
    """The logarithm of ``where``, which replaces 0 by another number."""
    u = RNG.random()
    return p > 0 and bool(np.log(np.where(u > 0, u, 1e-300)) < np.log(p / q))


@count("random", wrong=("np.clip(u, 1e-300, 1.0)", "np.square(u)"))
def logarithms_of_a_list(p, q):
    """A list of numbers of ``random`` is clipped, selected from, and its logarithms are taken."""
    u = [random.random() for _ in p]
    return np.cumprod((p > 0) & (np.log(np.where(q > 0, np.clip(u, 1e-300, 1.0), 1.0)) < np.log(p / q + 1e-300))).sum()


@coin("NumPy", wrong=("-p / q", "-p"))
def copied_sign(p, q):
    """``copysign`` gives the uniform another sign."""
    return bool(np.copysign(RNG.random(), -1.0) > -p / q)


@coin("random", wrong=("[u], 1 - u", "[u], (1 - u) / 2"))
def selected(p, q):
    """``select`` takes u or 1 - u."""
    u, v = random.random(), random.random()
    return bool(np.select([v < 0.5], [u], 1 - u) < p / q)


@count("random", wrong=("[random.random() for _ in p]", "[random.random()] * len(p)"))
def stacked_numbers(p, q):
    """``stack`` of single numbers, whose minimum with 1 is compared."""
    u = np.minimum(np.stack([random.random() for _ in p]), 1.0)
    return np.logical_and.accumulate(u * q < p).sum()


@count("random", wrong=("[random.random()], np", "[0.5], np"))
def concatenated_lists(p, q):
    """Lists and arrays joined by ``concatenate``."""
    u = np.concatenate([[random.random()], np.array([random.random() for _ in p[1:]])])
    return np.cumprod(u * q < p).sum()


@coin("NumPy", wrong=("np.log1p(p / q)", "np.log1p(p)"))
def sum_of_logarithms(p, q):
    """``logaddexp``: the logarithm of 1 and a uniform."""
    return bool(np.logaddexp(np.log(1 - RNG.random()), 0.0) < np.log1p(p / q))


@coin("NumPy", wrong=("RNG.random(3))[1]", "RNG.random(3))[0]"))
def middle_of_a_sort(p, q):
    """The middle one of three sorted uniforms, by its distribution function."""
    return bool(np.sort(RNG.random(3))[1] < _below_of_middle(min(1.0, p / q)))


@coin("NumPy", wrong=("< 0.5", "< 0.9"))
def both_of_a_sort(p, q):
    """Both of two are below the ratio, or one is and a coin is heads: r^2 and half of 2 r (1 - r)."""
    low, high = np.sort(RNG.random(2))
    return bool(high < p / q) or (bool(low < p / q) and RNG.random() < 0.5)


@token("NumPy", wrong=("w[order].cumsum()", "w[order][::-1].cumsum()"))
def order_of_uniforms(w):
    """A permutation by ``argsort`` of uniforms, and a lookup in it: the order does not matter."""
    keep = np.flatnonzero(w)
    order = keep[RNG.random(len(keep)).argsort()]
    cdf = w[order].cumsum()
    return order[np.searchsorted(cdf, RNG.random() * cdf[-1], side="right")]


@token("NumPy", wrong=("RNG.random() * cdf[-1]", "RNG.random() ** 2 * cdf[-1]"))
def decreasing_bins(w):
    """``digitize`` with bins that decrease to 0."""
    cdf = w.cumsum()
    return len(w) - int(np.digitize(RNG.random() * cdf[-1], [*cdf[::-1], 0.0]))


@token("random", wrong=("random.random() * len(w) - 0.5", "random.random() * len(w) / 2"))
def rounded_column(w):
    """The column of an alias table by ``round``."""
    share, other = _alias((w / w.sum()).tolist())
    column = int(np.round(random.random() * len(w) - 0.5))
    return column if random.random() < share[column] else other[column]


@coin("random", wrong=("random.random() + keep)[1]", "random.random() + keep / 2)[1]"))
def parts_by_modf(p, q):
    """``modf``: the integer part of uniform plus ratio."""
    keep = min(1.0, p / q)
    return bool(np.modf(random.random() + keep)[1] >= 1)


@count("NumPy", wrong=("where=p > 0", "where=p > 0.3"))
def divided_where(p, q):
    """``divide`` into an existing array, only where the divisor is positive."""
    u = np.divide(RNG.random(len(p)) * q, p, out=np.full_like(p, 2.0), where=p > 0)
    return np.cumprod(u < 1).sum()


@count("NumPy", wrong=("np.append(p / q, 1.0)", "np.append(p, 1.0)"))
def without_nan(p, q):
    """The entry after the drafts is NaN, which ``nan_to_num`` replaces by 1: never accepted."""
    u = np.append(RNG.random(len(p)), np.nan)
    return np.cumprod(np.nan_to_num(u, nan=1.0) < np.append(p / q, 1.0)).sum()


@count("random", wrong=("u < ratio", "u < ratio / 2"))
def vectorized(p, q):
    """``vectorize`` of the comparison, for a list."""
    return np.cumprod(np.vectorize(lambda u, ratio: u < ratio)([random.random() for _ in p], p / q)).sum()
