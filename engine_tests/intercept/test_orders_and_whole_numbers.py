"""Values at a place of an order, operations that are made of others, and whole numbers of other dtypes: exact laws."""

from __future__ import annotations

import random

import pytest
import torch

from test_support.intercept.compositions import answered_law

KEEP = 0.3
MIDDLE = KEEP**2 * (3 - 2 * KEEP)
"""The middle one of three is below ``KEEP``."""


def uniforms(count=1):
    return torch.rand(count, dtype=torch.float64)


def law(compute):
    return answered_law(lambda: torch.as_tensor(compute()).reshape(-1))


@pytest.mark.parametrize(
    "compute",
    [
        lambda: uniforms(3).sort().values[1],
        lambda: uniforms(3).sort(descending=True)[0][1],
        lambda: uniforms(3).median(),
        lambda: uniforms(3).median(0).values,
        lambda: uniforms(3).kthvalue(2).values,
        lambda: uniforms(3).topk(2).values[1],
        lambda: uniforms(3).topk(3, largest=False).values[1],
    ],
)
def test_the_middle_one_of_three_is_compared(compute):
    assert law(lambda: compute() < KEEP)[(1,)] == pytest.approx(MIDDLE)


def test_all_values_of_an_order_are_compared():
    assert law(lambda: uniforms(2).sort().values < KEEP) == pytest.approx({(1, 1): 0.09, (1, 0): 0.42, (0, 0): 0.49})


@pytest.mark.parametrize(
    ("compute", "bound"),
    [
        (lambda: torch.lerp(torch.ones(1), torch.full((1,), 3.0), uniforms()), 1 + 2 * KEEP),
        (lambda: torch.addcmul(torch.ones(1), torch.full((1,), 2.0), uniforms(), value=2), 1 + 4 * KEEP),
        (lambda: torch.addcdiv(torch.ones(1), uniforms(), torch.full((1,), 2.0)), 1 + KEEP / 2),
        (lambda: torch.logaddexp(uniforms().log(), torch.zeros(1)).exp(), 1 + KEEP),
        (lambda: torch.nn.functional.softplus(uniforms().log()).exp(), 1 + KEEP),
        (lambda: torch.nn.functional.hardtanh(uniforms(), -1.0, 0.5), KEEP),
        (lambda: torch.copysign(-uniforms(), torch.ones(1)), KEEP),
        (lambda: torch.special.xlogy(torch.ones(1), uniforms()).exp(), KEEP),
        (lambda: torch.eye(1, dtype=torch.float64) @ uniforms(), KEEP),
        (lambda: torch.nan_to_num(torch.cat([torch.tensor([torch.nan]), uniforms()]), nan=2.0).min(), KEEP),
    ],
)
def test_what_is_made_of_others_is_below_a_bound_as_often_as_the_uniform(compute, bound):
    assert law(lambda: compute() < bound)[(1,)] == pytest.approx(KEEP, abs=1e-6)


def test_a_tensor_of_whole_numbers_or_bools_is_one():
    thirds = dict.fromkeys([(0,), (1,), (2,)], pytest.approx(1 / 3))
    assert law(lambda: torch.tensor([3 * random.random()], dtype=torch.long)) == thirds
    assert law(lambda: torch.full((1,), 3 * random.random(), dtype=torch.long)) == thirds
    assert law(lambda: torch.tensor([3 * random.random()], dtype=torch.long) == 1)[(1,)] == pytest.approx(1 / 3)
    assert law(lambda: torch.tensor([random.random()], dtype=torch.bool)) == {(1,): 1.0}


@pytest.mark.thorough
def test_a_whole_number_that_is_too_large_for_its_dtype_begins_again():
    assert law(lambda: torch.randint(0, 512, (1,)).to(torch.uint8) < 4)[(1,)] == pytest.approx(1 / 64)
    assert law(lambda: torch.randint(100, 150, (1,)).to(torch.int8) < 0)[(1,)] == pytest.approx(22 / 50)
    assert law(lambda: torch.randint(0, 128, (1,)).to(torch.int8) < 4)[(1,)] == pytest.approx(4 / 128)


def test_a_comparison_of_one_of_many_numbers_is_one_branch_and_an_index_is_each_of_them():
    quarter = law(lambda: torch.randint(0, 4000, (2,)) < 1000)
    assert quarter == pytest.approx({(1, 1): 1 / 16, (1, 0): 3 / 16, (0, 1): 3 / 16, (0, 0): 9 / 16})
    hundred = dict.fromkeys([(2 * number,) for number in range(100)], pytest.approx(0.01))
    assert law(lambda: torch.arange(0, 200, 2)[torch.randint(0, 100, (1,))]) == hundred
    assert law(lambda: torch.randint(0, 128, (1,)) % 2) == pytest.approx({(0,): 0.5, (1,): 0.5})


@pytest.mark.parametrize("floor", [lambda x: x.floor(), lambda x: x.long(), torch.trunc])
def test_a_whole_part_that_is_likely_to_be_small_is_not_followed_to_its_end(floor):
    """The logarithm of a uniform that is kept from 0 has 1986 whole parts, as a ``Geometric`` of torch computes it."""
    runs = []

    def failures():
        runs.append(uniforms().clamp(min=1e-308).log() / torch.tensor(-KEEP, dtype=torch.float64).log1p())
        return floor(runs[-1]) < 2

    assert law(failures) == {(0,): pytest.approx((1 - KEEP) ** 2), (1,): pytest.approx(1 - (1 - KEEP) ** 2)}
    assert len(runs) == 2


def test_an_outcome_that_is_certain_is_no_draw_from_the_state_behind_which_the_generator_stands_still():
    """A binomial number of probability 1 moves no generator."""
    weights = torch.tensor([1 - KEEP, KEEP], dtype=torch.float64)

    def both():
        one = torch.tensor(1.0)
        return torch.distributions.Binomial(1, one).sample() + torch.multinomial(weights, 1)

    assert law(both) == {(1,): pytest.approx(1 - KEEP), (2,): pytest.approx(KEEP)}
