"""The bounds of ``rounding`` driven to their edge in NumPy: no usual code is beyond them, and some comes near."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws import rounding
from test_support.laws.rounding_edges import exact_pmf, fine, look_up_error, round_error, worst

SIZES = (2, 3, 8, 64, 1024, 2**14, 2**18)
LONG = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2.0**-60, reason="this machine has no floats finer than float64 to compare with"
)
DTYPES = [np.float32, pytest.param(np.float64, marks=LONG)]
SMALLEST_SHARE = 0.005
"""If the bounds were a hundred times as large, no error would be this share of them."""


def softmax(logits):
    weights = np.exp(logits - logits.max())
    return weights / weights.sum(), np.log(weights / weights.sum())


def along_another_axis(logits):
    """The same for logits whose last axis is the batch, as in [V, B]: added up one by one."""
    weights = np.exp(logits - logits.max())
    total = np.stack([weights, weights], axis=1).sum(axis=0)[0]
    return weights / total, np.log(weights) - np.log(total)


def by_its_own_cdf(logits):
    weights = np.exp(logits - logits.max())
    pmf = weights / np.cumsum(weights)[-1]
    return pmf, np.log(pmf)


def by_logarithms(logits):
    shifted = logits - logits.max()
    log_pmf = shifted - np.log(np.exp(shifted).sum())
    return np.exp(log_pmf), log_pmf


WRITINGS = {"softmax": softmax, "axis": along_another_axis, "cdf": by_its_own_cdf, "logarithms": by_logarithms}


def of_dtype(error, dtype):
    return lambda one, other: error(one.astype(dtype), other.astype(dtype))


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
def test_a_decision_is_within_its_bound_and_near_it(dtype, size):
    error = of_dtype(round_error(WRITINGS, np.exp), dtype)
    edge = worst(size, 12 if size < 2**14 else 1, error, rounding.of_decision(rounding.spacing(np.dtype(dtype)), size))
    assert SMALLEST_SHARE < edge.share < 1, edge


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [*SIZES[1:], 151_936])
def test_a_look_up_is_within_its_bound_and_near_it(dtype, size):
    error = of_dtype(look_up_error(WRITINGS, np.cumsum), dtype)
    edge = worst(size, 12 if size < 2**14 else 1, error, rounding.of_lookup(rounding.spacing(np.dtype(dtype)), size))
    assert 0.1 < edge.share < 1, edge


@pytest.mark.parametrize("size", SIZES[3:])
def test_only_sums_along_the_last_axis_are_made_in_pairs(size):
    """The premise of n u for a sum: in pairs it would be the logarithm of n."""
    numbers = np.full(size, 0.7, dtype=np.float32)
    exact, u = size * float(numbers[0]), 2.0**-24

    def error(total):
        return abs(float(total) - exact) / exact / u

    in_pairs = 8 + np.log2(size)
    one_by_one = [np.cumsum(numbers)[-1], np.stack([numbers, numbers], 1).sum(0)[0]]
    assert error(numbers.sum()) < in_pairs
    assert all(error(total) < size - 1 for total in one_by_one)
    assert size < 1024 or all(error(total) > 2 * in_pairs for total in one_by_one)


def test_what_is_compared_with_is_fine_enough():
    logits = np.log(np.array([1.0, 2.0, 5.0])).astype(np.float32)
    assert np.abs(exact_pmf(fine(logits)) - np.array([1, 2, 5]) / 8).max() < 1e-7
    assert exact_pmf(np.zeros(8)).tolist() == [1 / 8] * 8
    assert fine(logits).dtype == np.float64


def test_a_bound_that_is_too_small_would_be_seen():
    """The bound of before, which took every sum to be made in pairs, whatever its length."""
    error = of_dtype(round_error(WRITINGS, np.exp), np.float32)
    assert worst(2**14, 1, error, 32 * rounding.FLOAT32).share > 1
