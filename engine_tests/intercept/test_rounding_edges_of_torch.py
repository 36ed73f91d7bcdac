"""The bounds of ``rounding`` driven to their edge in torch: no usual code is beyond them, and some comes near."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from specverify.laws import rounding
from test_support.laws.rounding_edges import fine, look_up_error, round_error, worst

SIZES = (2, 3, 8, 64, 1024)
LONG = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2.0**-60, reason="this machine has no floats finer than float64 to compare with"
)
DTYPES = [torch.float32, torch.bfloat16, torch.float16, pytest.param(torch.float64, marks=LONG)]
SMALLEST_SHARE = 0.005
"""If the bounds were a hundred times as large, no error would be this share of them."""


def softmax(logits):
    pmf = logits.softmax(-1)
    return pmf, pmf.log()


def by_logarithms(logits):
    log_pmf = logits.log_softmax(-1)
    return log_pmf.exp(), log_pmf


def by_hand(logits):
    weights = (logits - logits.max()).exp()
    return weights / weights.sum(), (logits - logits.max()) - weights.sum().log()


def by_its_own_cdf(logits):
    weights = (logits - logits.max()).exp()
    pmf = weights / weights.cumsum(-1)[-1]
    return pmf, pmf.log()


WRITINGS = {"softmax": softmax, "logarithms": by_logarithms, "by hand": by_hand, "cdf": by_its_own_cdf}


def read(tensor):
    return fine(tensor.numpy()) if tensor.dtype == torch.float64 else tensor.double().numpy()


def of_dtype(error, dtype):
    return lambda one, other: error(torch.from_numpy(one).to(dtype), torch.from_numpy(other).to(dtype))


def edge_of_a_decision(dtype, size, rounds):
    error = of_dtype(round_error(WRITINGS, torch.exp, read), dtype)
    return worst(size, rounds, error, rounding.of_decision(rounding.spacing(dtype), size))


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_a_decision_is_within_its_bound_and_near_it(dtype, size):
    edge = edge_of_a_decision(dtype, size, 12)
    assert SMALLEST_SHARE < edge.share < 1, edge


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", [2**14, 2**18])
def test_a_decision_over_a_whole_vocabulary_is_within_its_bound(dtype, size):
    if (dtype, size) == (torch.float16, 2**18):
        assert not torch.full((size,), -0.5, dtype=dtype).log_softmax(-1).exp().any(), "what is equal is lost"
        return
    edge = edge_of_a_decision(dtype, size, 1)
    assert edge.share < 1, edge


def edge_of_a_look_up(dtype, size, rounds):
    error = of_dtype(look_up_error(WRITINGS, lambda p: p.cumsum(-1), read), dtype)
    return worst(size, rounds, error, rounding.of_lookup(rounding.spacing(dtype), size))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("size", SIZES[1:])
def test_a_look_up_is_within_its_bound_and_near_it(dtype, size):
    edge = edge_of_a_look_up(dtype, size, 12)
    assert 0.1 < edge.share < 1, edge


@pytest.mark.parametrize("dtype", [torch.float32, pytest.param(torch.float64, marks=LONG)], ids=str)
def test_a_look_up_in_a_whole_vocabulary_is_within_its_bound_and_near_it(dtype):
    edge = edge_of_a_look_up(dtype, 151_936, 1)
    assert 0.1 < edge.share < 1, edge


def test_a_softmax_is_not_summed_up_in_pairs():
    """The premise of n u for a sum: of 2**18 equal numbers but one, its total is further from 1 than pairs would be."""
    logits = torch.full((2**18,), -0.1)
    logits[0] = 0.0
    off = abs(float(logits.softmax(-1).double().sum()) - 1) / 2.0**-24
    assert 100 < off < 2**18
    assert abs(float(logits.exp().sum().double()) / float(logits.exp().double().sum()) - 1) < 30 * 2.0**-24
