"""A random number beside floats of 16 bits: its law against the place where torch itself, given numbers, turns over."""

from __future__ import annotations

import random

import pytest
import torch

from specverify.intercept.everywhere import answered_everywhere
from specverify.laws import rounding
from specverify.laws.enumeration import program_law

HALVES = (torch.float16, torch.bfloat16)


def written(row, number):
    row[1] = number
    return row


ROUNDED = {
    "a number of Python below a bound": lambda u, r: u() < r,
    "a bound above a number of Python": lambda u, r: r > u(),
    "at most": lambda u, r: u() <= r,
    "at least": lambda u, r: r >= u(),
    "a function": lambda u, r: torch.gt(r, u()),
    "a row above a number of Python": lambda u, r: (r[None] > u())[0],
    "a number taken out of a tensor": lambda u, r: torch.tensor(u(), dtype=torch.float64).item() < r,
    "a tensor of one number beside a row": lambda u, r: (torch.tensor(u(), dtype=torch.float64) < r[None])[0],
    "where": lambda u, r: torch.where(r > 0, u(), r) < 0.5,
    "a product": lambda u, r: (r * u()) < 0.1,
    "a quotient": lambda u, r: (u() / r) < 0.77,
    "a difference": lambda u, r: (r - u()) > 0,
    "a difference, the other way": lambda u, r: (u() - r) < 0,
    "a difference of a row and a tensor of one number": lambda u, r: (r[None] - torch.tensor(u()))[0] > 0,
    "a difference in its place": lambda u, r: r.clone().sub_(u()) > 0,
    "a tensor of 16 bits below a number of Python": lambda u, r: torch.tensor(u(), dtype=r.dtype) < 0.33,
    "a conversion to 16 bits": lambda u, r: torch.tensor([u()], dtype=torch.float64).to(r.dtype)[0] < 0.33,
    "a tensor full of it": lambda u, r: torch.full((1,), u(), dtype=r.dtype)[0] < 0.33,
    "written into a row": lambda u, r: written(r.repeat(2), u())[1] < 0.33,
    "behind a mask": lambda u, r: r[None].masked_fill(torch.tensor([True]), u())[0] < 0.33,
}
AS_THEY_ARE = {
    "two tensors of one number": lambda u, r: torch.tensor(u(), dtype=torch.float64) < r,
    "joined with a finer one": lambda u, r: torch.stack([torch.tensor(u(), dtype=torch.float64), r])[0] < 0.33,
    "two rows": lambda u, r: (torch.tensor([u()], dtype=torch.float64) < r[None])[0],
    "a bound as a number of Python": lambda u, r: u() < r.item(),
}


def turns_at(way, bound):
    """Return the number up to which torch says yes, by bisection."""
    low, high = 0.0, 1.0
    assert bool(way(lambda: low, bound)) > bool(way(lambda: high, bound))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if way(lambda at=middle: at, bound) else (low, middle)
    return low


def law_of(way, bound):
    def program(draws):
        with answered_everywhere(draws):
            return bool(way(random.random, bound))

    return program_law(program)


@pytest.mark.parametrize("value", [0.3, 0.33, 0.6, 0.75])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("way", ROUNDED)
def test_a_number_that_is_rounded_to_16_bits_has_the_law_of_that(way, dtype, value):
    bound = torch.tensor(value, dtype=dtype)
    law = law_of(ROUNDED[way], bound)
    assert float(law.probabilities[True]) == pytest.approx(turns_at(ROUNDED[way], bound), abs=1e-7)
    assert law.rounding.epsilon == rounding.spacing(dtype)


@pytest.mark.parametrize("way", [way for way in ROUNDED if "product" not in way])
def test_the_rounding_is_to_be_seen(way):
    """At 0.75 the bound is a float of both, and half a spacing of its neighbours is missing or too much."""
    bound = torch.tensor(0.75, dtype=torch.bfloat16)
    assert abs(turns_at(ROUNDED[way], bound) - (0.5 if way == "where" else 0.75)) > 1e-4


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("way", AS_THEY_ARE)
def test_a_number_that_is_not_rounded_is_compared_as_it_is(way, dtype):
    bound = torch.tensor(0.33, dtype=dtype)
    law = law_of(AS_THEY_ARE[way], bound)
    assert float(law.probabilities[True]) == pytest.approx(turns_at(AS_THEY_ARE[way], bound), abs=1e-12)
