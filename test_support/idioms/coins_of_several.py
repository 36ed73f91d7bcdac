"""Ways to decide by several random numbers together whether one draft is kept: sums, products, differences, shares."""

from __future__ import annotations

import random

import numpy as np
import torch

from test_support.idioms.idiom import coin

RNG = np.random.default_rng(0)


@coin("torch", wrong=("product * (1 - product.log())", "product"))
def product_by_its_own_law(p, q):
    """The product of two uniforms, by its distribution function: it is below c with probability c (1 - log c)."""
    product = torch.rand(2, dtype=torch.float64).prod()
    return bool(product * (1 - product.log()) < p / q)


@coin("torch", wrong=("s - s.floor()", "s / 2"))
def what_is_behind_the_point(p, q):
    """The fractional part of the sum of two uniforms is uniform; half the sum is not."""
    s = torch.rand(2).sum()
    return bool(s - s.floor() < p / q)


@coin("torch", wrong=("a / (a + b)", "a / (a + 2 * b)"))
def share_of_two_clocks(p, q):
    """The share of one exponential in the sum of two is uniform."""
    a, b = torch.empty(2, dtype=p.dtype).exponential_()
    return bool(a / (a + b) < p / q)


@coin("torch", wrong=("noise[0] - noise[1]", "noise[0] + noise[1]"))
def difference_of_two_noises(p, q):
    """The difference of two Gumbel numbers is logistic, like the log-odds of a uniform."""
    noise = -torch.log(-torch.log(torch.rand(2, dtype=torch.float64)))
    return bool(noise[0] - noise[1] < torch.logit((p / q).clamp(max=1)))


@coin("torch", wrong=("1 - (1 + waited) * torch.exp(-waited)", "1 - torch.exp(-waited)"))
def second_arrival(p, q):
    """The time of the second arrival, by its distribution function."""
    waited = torch.empty(2, dtype=p.dtype).exponential_().sum()
    return bool(1 - (1 + waited) * torch.exp(-waited) < p / q)


@coin("torch", wrong=("u * (1 - u) * 4", "u * (1 - u) * 2"))
def parabola(p, q):
    """A parabola of one uniform, which occurs in it twice."""
    u = torch.rand((), dtype=torch.float64)
    return bool(p >= q) or bool(u * (1 - u) * 4 < 1 - (1 - p / q) ** 2)


@coin("random", wrong=("(random.random() + random.random()) % 1.0", "random.random() * random.random()"))
def sum_round_the_clock(p, q):
    """The sum of two uniforms, modulo 1."""
    return (random.random() + random.random()) % 1.0 < p / q


@coin("NumPy", wrong=("s * s / 2 if s < 1 else 1 - (2 - s) ** 2 / 2", "s / 2"))
def triangle(p, q):
    """The sum of two uniforms, by its distribution function."""
    s = RNG.random(2).sum()
    return bool((s * s / 2 if s < 1 else 1 - (2 - s) ** 2 / 2) < p / q)
