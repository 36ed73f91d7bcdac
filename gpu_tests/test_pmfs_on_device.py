"""Float tensors on the device against exact arithmetic on the very same inputs: every float is a fraction.

u is half of eps, the largest relative error of one rounded operation; "relative" bounds below are relative to the exact
value. Each bound is the first-order count of roundings with u replaced by eps, which pays for the higher orders and for
any order of summation: a sum of n terms of one sign has relative error (n - 1) u at most.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from reference import (
    accept_probability,
    argmax,
    min_p,
    one_hot,
    overlap,
    residual,
    softmax,
    top_k,
    top_p,
    top_tokens,
    total_variation,
)

SIZES = (1, 2, 7, 300)
Exact = list[Fraction]


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=range(3))
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(request.param)


def random_pmf(rng: np.random.Generator, size: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return a peaked pmf with some entries 0, normalised in its own precision."""
    weights = torch.tensor(rng.gamma(0.4, size=size) * (rng.random(size) < 0.8) + (np.arange(size) == 0) * 0.1)
    weights = weights.to(device=device, dtype=dtype)
    return weights / weights.sum()


def exact(values: torch.Tensor) -> Exact:
    return [Fraction(value) for value in values.tolist()]


def exact_residual(p: Exact, q: Exact) -> Exact:
    excess = [max(mass - proposed, Fraction(0)) for mass, proposed in zip(p, q, strict=True)]
    return [value / sum(excess) for value in excess] if any(excess) else p


def normalised(values: Exact, kept: set[int]) -> Exact:
    total = sum(values[token] for token in kept)
    return [value / total if token in kept else Fraction(0) for token, value in enumerate(values)]


def ranked(values: Exact) -> list[int]:
    return sorted(range(len(values)), key=lambda token: (-values[token], token))


def assert_relative(found: torch.Tensor, expected: Exact, roundings: float) -> None:
    """Assert that each entry is within ``roundings`` eps of the exact one, and exactly 0 where the exact one is 0."""
    eps = Fraction(torch.finfo(found.dtype).eps)
    for value, wanted in zip(exact(found.reshape(-1)), expected, strict=True):
        assert abs(value - wanted) <= Fraction(roundings) * eps * wanted, f"{float(value)} for {float(wanted)}"


@pytest.mark.parametrize("size", SIZES)
def test_accept_probability(rng: Any, size: int, dtype: torch.dtype, device: torch.device) -> None:
    """One division: relative error u."""
    p, q = (random_pmf(rng, size, dtype, device) for _ in range(2))
    for token, (mass, proposed) in enumerate(zip(exact(p), exact(q), strict=True)):
        wanted = min(Fraction(1), mass / proposed) if proposed else Fraction(int(mass > 0))
        assert_relative(accept_probability(p, q, token), [wanted], 1)


@pytest.mark.parametrize("size", SIZES)
def test_residual(rng: Any, size: int, dtype: torch.dtype, device: torch.device) -> None:
    """A subtraction (u), the sum of such differences (n u) and a division (u): relative error (n + 2) u."""
    p, q = (random_pmf(rng, size, dtype, device) for _ in range(2))
    found = residual(p, q)
    assert (found.dtype, found.device.type) == (dtype, device.type)
    assert_relative(found, exact_residual(exact(p), exact(q)), size + 2)


@pytest.mark.parametrize("size", SIZES)
def test_residual_of_equal_pmfs_is_the_target(rng: Any, size: int, dtype: torch.dtype, device: torch.device) -> None:
    p = random_pmf(rng, size, dtype, device)
    assert residual(p, p.clone()).tolist() == p.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_total_variation(rng: Any, size: int, dtype: torch.dtype, device: torch.device) -> None:
    """A subtraction (u) in each of n terms of one sign: relative error n u."""
    p, q = (random_pmf(rng, size, dtype, device) for _ in range(2))
    wanted = sum((max(a - b, Fraction(0)) for a, b in zip(exact(p), exact(q), strict=True)), Fraction(0))
    assert_relative(total_variation(p, q), [wanted], size)


@pytest.mark.parametrize("size", SIZES)
def test_overlap(rng: Any, size: int, dtype: torch.dtype, device: torch.device) -> None:
    """Each term p - (p - q)+ has two roundings of numbers up to p: absolute error 2 u p, and (n - 1) u from the sum."""
    p, q = (random_pmf(rng, size, dtype, device) for _ in range(2))
    wanted = sum(min(a, b) for a, b in zip(exact(p), exact(q), strict=True))
    error = abs(Fraction(float(overlap(p, q))) - wanted)
    assert error <= (size + 1) * Fraction(torch.finfo(dtype).eps) * sum(exact(p))


@pytest.mark.parametrize("k", [1, 2, 5, 1000])
@pytest.mark.parametrize("size", SIZES)
def test_top_k(rng: Any, size: int, k: int, dtype: torch.dtype, device: torch.device) -> None:
    """The kept set is exact, ties with the k-th included; a sum ((n - 1) u) and a division (u): relative error n u."""
    pmf = random_pmf(rng, size, dtype, device)
    values = exact(pmf)
    smallest = values[ranked(values)[min(k, size) - 1]]
    kept = {token for token, value in enumerate(values) if value >= smallest}
    assert_relative(top_k(pmf, k), normalised(values, kept), size)


@pytest.mark.parametrize("mass", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("size", SIZES)
def test_top_p(rng: Any, size: int, mass: float, dtype: torch.dtype, device: torch.device) -> None:
    """As top-k. The cumulative sums are taken in float64 and stay clear of ``mass`` for these inputs."""
    pmf = random_pmf(rng, size, dtype, device)
    values = exact(pmf)
    kept: set[int] = set()
    for token in ranked(values):
        total = sum((values[kept_token] for kept_token in kept), Fraction(0))
        assert abs(total - Fraction(mass)) > size * Fraction(torch.finfo(torch.float64).eps)
        if total >= Fraction(mass):
            break
        kept.add(token)
    assert_relative(top_p(pmf, mass), normalised(values, kept), size)


def test_top_p_at_equality_and_ties(dtype: torch.dtype, device: torch.device) -> None:
    pmf = torch.tensor([0.25, 0.5, 0.25], dtype=dtype, device=device)
    assert top_p(pmf, 0.5).tolist() == [0, 1, 0]
    assert top_p(pmf, 0.75).tolist() == pytest.approx([1 / 3, 2 / 3, 0], rel=2 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("ratio", [0, 0.125, 0.25, 1])
@pytest.mark.parametrize("size", SIZES)
def test_min_p(rng: Any, size: int, ratio: float, dtype: torch.dtype, device: torch.device) -> None:
    """As top-k; ratios are powers of two, so that the threshold is exact."""
    pmf = random_pmf(rng, size, dtype, device)
    values = exact(pmf)
    kept = {token for token, value in enumerate(values) if value >= max(values) * Fraction(ratio)}
    assert_relative(min_p(pmf, ratio), normalised(values, kept), size)


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("size", SIZES)
def test_softmax(rng: Any, size: int, temperature: float, dtype: torch.dtype, device: torch.device) -> None:
    """With z = (l - max) / T: a subtraction, T and a division put 3 u |z| into an exponent, hence into a weight.

    CUDA divides a tensor by a number by multiplying with its reciprocal, which is u more. The exponential is good to 2
    units in the last place (4 u). The sum repeats both errors at most and adds (n - 1) u, the division u: relative
    error (8 max|z| + 8 + n) u, stated as (4 max|z| + 4 + n) eps.
    """
    logits = torch.tensor(rng.normal(0, 2, size), dtype=dtype, device=device)
    with localcontext() as context:
        context.prec = 60
        scaled = [(Decimal(value) - Decimal(float(logits.max()))) / Decimal(temperature) for value in logits.tolist()]
        weights = [Fraction(value.exp()) for value in scaled]
    spread = float(max(abs(value) for value in scaled))
    found = softmax(logits, temperature)
    assert (found.dtype, found.device.type) == (dtype, device.type)
    assert_relative(found, normalised(weights, set(range(size))), 4 * spread + 4 + size)


@pytest.mark.parametrize("values", [[1, 1, 1], [0, 2, 2, 1, 2], [5], [-3, -1, -2, -1], [0.0, -0.0]])
@pytest.mark.parametrize("convert", [lambda values: values, lambda values: values[::-1]])
def test_ties_agree_with_numpy(
    values: list[float], convert: Callable[[list[float]], list[float]], dtype: torch.dtype, device: torch.device
) -> None:
    values = convert(values)
    row = torch.tensor(values, dtype=dtype, device=device)
    expected = np.array(values, dtype=np.float64)
    assert argmax(row) == argmax(expected) == int(expected.argmax())
    assert top_tokens(row, 3) == top_tokens(expected, 3)
    greedy = softmax(row, 0)
    assert greedy.tolist() == one_hot(argmax(expected), expected).tolist() == one_hot(argmax(row), row).tolist()
    assert (greedy.dtype, greedy.device.type) == (dtype, device.type)
