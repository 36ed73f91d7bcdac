"""Sums of outcomes beside bounds: exact laws, where a sum of counts is read no further than the bound."""

from __future__ import annotations

import pytest
import torch

from test_support.intercept.compositions import answered_law

SHARE = 0.25


def coins():
    return torch.rand(2, dtype=torch.float64) < SHARE


def signs():
    return coins().long() * 2 - 1


BOTH, SOME = SHARE**2, 1 - (1 - SHARE) ** 2


@pytest.mark.parametrize(
    ("compute", "share"),
    [
        (lambda: signs().sum() < 1, 1 - BOTH),
        (lambda: signs().sum() < 0, 1 - SOME),
        (lambda: signs().sum() <= 0.5, 1 - BOTH),
        (lambda: coins().sum() <= 1.5, 1 - BOTH),
        (lambda: coins().sum() <= 1, 1 - BOTH),
        (lambda: coins().float().sum() < 1.5, 1 - BOTH),
        (lambda: coins().sum(dtype=torch.float32) / 2 == 0.5, SOME - BOTH),
        (lambda: coins().reshape(2, 1).sum((0, 1)) > 0, SOME),
        (lambda: coins().float().cumprod(0).sum() >= 1, SHARE),
        (lambda: coins().logical_xor(torch.tensor([True, False])).all(), SHARE * (1 - SHARE)),
        (lambda: torch.where(coins(), 3, -1).sum() < 0, (1 - SHARE) ** 2),
        (lambda: torch.rand(2, 2).amax((0, 1)) < SHARE, SHARE**4),
        (lambda: torch.rand(3, 1).aminmax(dim=0).max < SHARE, SHARE**3),
    ],
)
def test_the_answer_has_its_probability(compute, share):
    assert answered_law(lambda: torch.as_tensor(compute()).reshape(-1))[(1,)] == pytest.approx(share, abs=1e-9)
