"""Tables of p and q that are apart by rounding, and exactly by a little: what they are for is in them."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from reference import check_pmf
from specverify.laws.rounded_tables import ROUNDED, rounded_pair
from specverify.laws.scenarios import SCENARIOS, scenario_task

TEXTS = [text for length in (1, 2, 3) for text in product(range(4), repeat=length)]


def rows(shape, dtype):
    target, draft = rounded_pair(shape, 4, 8, dtype)
    return [(target(text), draft(text)) for text in TEXTS]


def left_empty(p, q):
    """A draft may be rejected, and nothing is left to replace it."""
    return bool((p < q).any() and not (p > q).any())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", ROUNDED)
def test_rows_are_pmfs_of_their_type_with_token_0_and_sometimes_the_last_forbidden(shape, dtype):
    found = rows(shape, dtype)
    for p, q in found:
        assert p.dtype == q.dtype == dtype
        assert check_pmf(p, "p") is p
        assert check_pmf(q, "q") is q
        assert np.array_equal(p > 0, q > 0)
        assert p[0] == 0
        assert np.abs(p.astype(float) - q).max() < 8 * np.finfo(np.float32 if "32" in shape else dtype).eps
    assert {bool(p[-1] > 0) for p, _ in found} == {True, False}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_below_means_that_nothing_is_left_and_above_that_nothing_is_rejected(dtype):
    assert all(left_empty(p, q) for p, q in rows("just_below", dtype))
    assert all((np.nextafter(q, dtype(0)) == p).all() for p, q in rows("just_below", dtype))
    assert all((p[q > 0] > q[q > 0]).all() for p, q in rows("just_above", dtype))


def test_a_share_of_two_softmaxes_is_left_empty():
    for dtype in (np.float64, np.float32):
        share = np.mean([left_empty(p, q) for p, q in rows("two_softmaxes", dtype)])
        assert 0.2 < share < 0.5


def test_rows_below_in_float32_are_ordinary_in_float64():
    for p, q in rows("below_in_float32", np.float64):
        assert not left_empty(p, q)
        assert left_empty(p.astype(np.float32), q.astype(np.float32))


def test_nearly_equal_rows_are_rationals_apart_by_2_to_the_minus_30_at_most():
    chosen = [scenario for scenario in SCENARIOS if scenario.shape == "nearly_equal"]
    assert {scenario.vocabulary for scenario in chosen} == {2, 3}
    for scenario in chosen:
        task = scenario_task(scenario)
        p, q = task.target(scenario.prompt), task.draft(scenario.prompt)
        assert sum(p) == sum(q) == 1
        apart = [abs(a - b) for a, b in zip(p, q, strict=True)]
        assert {type(value) for value in apart} == {Fraction}
        assert 0 < max(apart) <= Fraction(1, 2**30)
