"""A token drawn from weights with NumPy."""

from __future__ import annotations

import numpy as np

from test_support.idioms.idiom import token

RNG = np.random.default_rng(0)


def logarithms(w):
    with np.errstate(divide="ignore"):
        return np.log(w)


@token("NumPy", wrong=("p=w / w.sum()", "p=np.sqrt(w) / np.sqrt(w).sum()"))
def choice(w):
    """``choice``."""
    return RNG.choice(len(w), p=w / w.sum())


@token("NumPy", wrong=("p=w / w.sum()", "p=w**2 / (w**2).sum()"))
def choice_of_an_array(w):
    """``choice`` of an array, one of shape (1,)."""
    return RNG.choice(np.arange(len(w)), size=1, p=w / w.sum()).item()


@token("NumPy", wrong=("p=w / w.sum()", "p=None"))
def legacy_choice(w):
    """``np.random.choice``."""
    return np.random.choice(len(w), p=w / w.sum())  # noqa: NPY002


@token("NumPy", wrong=(".argmax()", ".argmin()"))
def multinomial(w):
    """The index of 1 in a multinomial row of one trial; the last weight is positive."""
    order = np.argsort(w, kind="stable")
    return order[RNG.multinomial(1, w[order] / w.sum()).argmax()]


@token("NumPy", wrong=("RNG.gumbel(size=len(w))", "RNG.gumbel(size=len(w)) * 3"))
def gumbel(w):
    """``gumbel``."""
    return np.argmax(logarithms(w) + RNG.gumbel(size=len(w)))


@token("NumPy", wrong=("RNG.gumbel(logarithms(w[keep]))", "RNG.gumbel(w[keep])"))
def gumbel_around_logits(w):
    """``gumbel`` with a location for each token."""
    keep = np.flatnonzero(w)
    return keep[RNG.gumbel(logarithms(w[keep])).argmax()]


@token("NumPy", wrong=("RNG.exponential(1 / w[keep])", "RNG.exponential(w[keep])"))
def exponentials_of_scale(w):
    """The smallest of ``exponential`` with a scale for each token."""
    keep = np.flatnonzero(w)
    return keep[np.argmin(RNG.exponential(1 / w[keep]))]


@token("NumPy", wrong=("w[keep] / RNG.standard_exponential", "w[keep] ** 3 / RNG.standard_exponential"))
def weights_over_noise(w):
    """Weights over noise."""
    keep = np.flatnonzero(w)
    with np.errstate(divide="ignore"):
        return keep[(w[keep] / RNG.standard_exponential(len(keep))).argmax()]


@token("NumPy", wrong=("noise / w[keep]", "noise / np.sqrt(w[keep])"))
def noise_into_a_buffer(w):
    """Noise into an existing buffer."""
    keep = np.flatnonzero(w)
    noise = np.empty(len(keep))
    RNG.standard_exponential(out=noise)
    return keep[np.argmin(noise / w[keep])]


@token("NumPy", wrong=("** (1 / w[keep])", "** w[keep]"))
def powers(w):
    """Uniforms to the power of reciprocal weights."""
    keep = np.flatnonzero(w)
    return keep[np.argmax(RNG.random(len(keep)) ** (1 / w[keep]))]


@token("NumPy", wrong=("/ w[keep])]", "/ np.sqrt(w[keep]))]"))
def logarithms_over_weights(w):
    """Logarithms of uniforms over weights."""
    keep = np.flatnonzero(w)
    return keep[np.argmax(np.log1p(-RNG.random(len(keep))) / w[keep])]


@token("NumPy", wrong=("np.argsort(times)[0]", "np.argsort(times)[-1]"))
def argsort(w):
    """The first of an order."""
    keep = np.flatnonzero(w)
    times = RNG.exponential(size=len(keep)) / w[keep]
    return keep[np.argsort(times)[0]]


@token("NumPy", wrong=("np.argpartition(times, 0)[0]", "np.argpartition(-times, 0)[0]"))
def argpartition(w):
    """``argpartition``."""
    keep = np.flatnonzero(w)
    times = RNG.exponential(size=len(keep)) / w[keep]
    return keep[np.argpartition(times, 0)[0]]


@token("NumPy", wrong=("times == times.min()", "times == times.max()"))
def equal_to_the_smallest(w):
    """The index that is equal to the smallest."""
    keep = np.flatnonzero(w)
    times = RNG.exponential(size=len(keep)) / w[keep]
    return keep[np.flatnonzero(times == times.min())[0]]


@token("NumPy", wrong=("RNG.random() * cdf[-1]", "RNG.random() ** 2 * cdf[-1]"))
def searchsorted(w):
    """``searchsorted``."""
    cdf = w.cumsum()
    return np.searchsorted(cdf, RNG.random() * cdf[-1], side="right")


@token("NumPy", wrong=("cdf.searchsorted(", "cdf.searchsorted(0.5 * "))
def method_of_the_array(w):
    """``searchsorted`` as a method."""
    cdf = np.cumsum(w / w.sum())
    cdf /= cdf[-1]
    return cdf.searchsorted(RNG.random(), side="right")


@token("NumPy", wrong=("np.digitize(u, cdf)", "np.digitize(u * u, cdf)"))
def digitize(w):
    """``digitize``."""
    cdf = w.cumsum()
    u = RNG.random() * cdf[-1]
    return int(np.digitize(u, cdf))


@token("NumPy", wrong=("cdf > u", "cdf < u"))
def argmax_of_a_mask(w):
    """``argmax`` of the mask of weights above."""
    cdf = np.cumsum(w)
    u = RNG.uniform(0, cdf[-1])
    return np.argmax(cdf > u) if u < cdf[-1] else int(np.flatnonzero(w)[-1])


@token("NumPy", wrong=("(cdf <= u).sum()", "(cdf <= u / 2).sum()"))
def counted_below(w):
    """The number of bounds that are at most the uniform."""
    cdf = np.cumsum(w)
    u = RNG.random() * cdf[-1]
    return (cdf <= u).sum()


@token("NumPy", wrong=("np.nonzero(u < cdf)[0][0]", "np.nonzero(u < cdf)[0][-1]"))
def first_of_nonzero(w):
    """The first of ``nonzero``."""
    cdf = np.cumsum(w)
    u = RNG.random() * cdf[-1]
    return np.nonzero(u < cdf)[0][0]


@token("NumPy", wrong=("np.extract(cdf > u, np.arange(len(w)))[0]", "np.extract(cdf > u, np.arange(len(w)))[-1]"))
def extracted(w):
    """``extract`` of the tokens above."""
    cdf = np.cumsum(w)
    u = RNG.random() * cdf[-1]
    return np.extract(cdf > u, np.arange(len(w)))[0]


@token("NumPy", wrong=("RNG.random() < share[column]", "RNG.random() > share[column]"))
def alias_table(w):
    """An alias table with ``integers`` for the column."""
    share, other = _alias((w / w.sum()).tolist())
    column = RNG.integers(len(w))
    return column if RNG.random() < share[column] else other[column]


def _alias(pmf):
    share, other = [mass * len(pmf) for mass in pmf], list(range(len(pmf)))
    while True:
        low = [i for i, mass in enumerate(share) if mass < 1 - 1e-12 and other[i] == i]
        high = [i for i, mass in enumerate(share) if mass > 1 + 1e-12]
        if not low or not high:
            return share, other
        other[low[0]] = high[0]
        share[high[0]] -= 1 - share[low[0]]


@token("NumPy", wrong=("x % 1.0 < share", "x % 1.0 > share"))
def alias_table_of_one_number(w):
    """An alias table by the integer part and the fractional part of one number."""
    shares, other = _alias((w / w.sum()).tolist())
    x = RNG.random() * len(w)
    column = int(x // 1)
    share = shares[column]
    return column if x % 1.0 < share else other[column]


@token("NumPy", wrong=("w[order].cumsum()", "np.sqrt(w[order]).cumsum()"))
def permuted_first(w):
    """Tokens in a random order, and a lookup in their weights: the order does not matter."""
    keep = np.flatnonzero(w)
    order = RNG.permuted(keep)
    cdf = w[order].cumsum()
    return order[np.searchsorted(cdf, RNG.random() * cdf[-1], side="right")]


@token("NumPy", wrong=("p=w / w.sum()", "p=np.flip(w) / w.sum()"))
def drawn_without_replacement(w):
    """The first of a draw without replacement."""
    return RNG.choice(len(w), size=np.count_nonzero(w), replace=False, p=w / w.sum())[0]


@token("NumPy", wrong=("w[i] / rest", "w[i] / rest / 2"))
def coin_by_coin(w):
    """A coin for each token by ``binomial``."""
    keep = np.flatnonzero(w)
    for i, rest in zip(keep, reversed(np.cumsum(np.flip(w[keep]))), strict=True):
        if RNG.binomial(1, min(1.0, w[i] / rest)):
            return i
    return keep[-1]
