"""Functions of torch that use the order or the integer parts of random numbers, or that consist of other functions."""

from __future__ import annotations

import math

import torch

from test_support.idioms.idiom import coin, count, token
from test_support.idioms.tokens_of_numpy import _alias


def _below_of_middle(keep):
    """Return the value that the middle one of three uniforms is below with probability ``keep``."""
    return 0.5 - math.sin(math.asin(1 - 2 * keep) / 3)


def _keep(p, q):
    return min(1.0, float(p / q))


@coin("torch", wrong=("sort().values[1]", "sort().values[0]"))
def values_of_a_sort(p, q):
    """The middle one of the values of ``sort``, by its distribution function."""
    return bool(torch.rand(3, dtype=torch.float64).sort().values[1] < _below_of_middle(_keep(p, q)))


@coin("torch", wrong=("median()", "amax()"))
def median(p, q):
    """``median`` of three."""
    return bool(torch.rand(3, dtype=torch.float64).median() < _below_of_middle(_keep(p, q)))


@coin("torch", wrong=("kthvalue(2)", "kthvalue(1)"))
def value_of_kthvalue(p, q):
    """The value of ``kthvalue``."""
    return bool(torch.rand(3, dtype=torch.float64).kthvalue(2).values < _below_of_middle(_keep(p, q)))


@coin("torch", wrong=("< 0.5", "< 0.9"))
def values_of_topk(p, q):
    """Both values of ``topk``: the larger one is below the ratio, or the smaller one is and a coin is heads."""
    high, low = torch.rand(2, dtype=torch.float64).topk(2).values
    return bool(high < p / q) or (bool(low < p / q) and bool(torch.rand(()) < 0.5))


@coin("torch", wrong=("zero, q", "zero, p"))
def lerp(p, q):
    """``lerp`` by a uniform: a uniform below q is compared with p."""
    zero = torch.zeros((), dtype=p.dtype)
    return bool(torch.lerp(zero, q, torch.rand((), dtype=p.dtype)) < p)


@coin("torch", wrong=("(3 * u).frac()", "u.frac() * u"))
def fraction(p, q):
    """``frac``: the fractional part of a multiple of a uniform is uniform."""
    u = torch.rand((), dtype=torch.float64)
    return bool((3 * u).frac() < p / q)


@count("torch", wrong=("q, torch.rand", "p, torch.rand"))
def sum_of_a_product(p, q):
    """``addcmul``: the product of q and a uniform is subtracted from p."""
    return (torch.addcmul(p, q, torch.rand(len(p), dtype=p.dtype), value=-1) > 0).long().cumprod(0).sum()


@coin("torch", wrong=("torch.log1p(p / q)", "torch.log1p(p)"))
def sum_of_logarithms(p, q):
    """``logaddexp``: the logarithm of 1 and a uniform."""
    u = 1 - torch.rand((), dtype=p.dtype)
    return bool(torch.logaddexp(u.log(), torch.zeros_like(p)) < torch.log1p(p / q))


@coin("torch", wrong=("-p / q", "-p"))
def copied_sign(p, q):
    """``copysign`` gives the uniform another sign."""
    return bool(torch.copysign(torch.rand((), dtype=p.dtype), -torch.ones_like(p)) > -p / q)


@count("torch", wrong=("torch.cat([p / q", "torch.cat([p"))
def without_nan(p, q):
    """The entry after the drafts is NaN, which ``nan_to_num`` replaces by 1: never accepted."""
    u = torch.cat([torch.rand(len(p), dtype=p.dtype), torch.tensor([torch.nan])]).nan_to_num(nan=1.0)
    return (u < torch.cat([p / q, torch.ones(1)])).long().cumprod(0).sum()


@token("torch", wrong=("(torch.rand(1) * len(w))", "(torch.rand(1) ** 2 * len(w))"))
def column_by_floor(w):
    """The column of an alias table by ``floor`` and ``long``."""
    share, other = map(torch.tensor, _alias((w / w.sum()).tolist()))
    column = (torch.rand(1) * len(w)).floor().long()
    return torch.where(torch.rand(1) < share[column], column, other[column])


@token("torch", wrong=("torch.rand(()) * len(w)", "torch.rand(()) ** 2 * len(w)"))
def column_as_an_index(w):
    """The same as an index by ``int``."""
    share, other = map(torch.tensor, _alias((w / w.sum()).tolist()))
    column = (torch.rand(()) * len(w)).int()
    return column if torch.rand(()) < share[column] else other[column]


@token("torch", wrong=("w[order].cumsum(0)", "w[order].flip(0).cumsum(0)"))
def order_of_uniforms(w):
    """``argsort`` of uniforms as a permutation, and a lookup in it: the order does not matter."""
    keep = w.nonzero().view(-1)
    order = keep[torch.rand(len(keep)).argsort()]
    cdf = w[order].cumsum(0)
    return order[torch.searchsorted(cdf, cdf[-1:] * torch.rand(1, dtype=w.dtype), right=True)]


@token("torch", wrong=("w[order].cumsum(0)", "w[order].flip(0).cumsum(0)"))
def permuted(w):
    """``randperm``, and a lookup in it."""
    order = torch.randperm(len(w))
    cdf = w[order].cumsum(0)
    return order[torch.bucketize(cdf[-1] * torch.rand((), dtype=w.dtype), cdf, right=True)]


@coin("torch", wrong=("torch.randint(0, 256, (1,))", "torch.randint(0, 128, (1,))"))
def byte(p, q):
    """One of 256 numbers decides, unless it is the number of the threshold: then a uniform decides."""
    keep, number = 256 * min(1.0, float(p / q)), torch.randint(0, 256, (1,))
    whole = math.floor(keep)
    return bool(number < whole) or (bool(number == whole) and bool(torch.rand((), dtype=p.dtype) < keep - whole))
