"""The distance at which the rows of a call repeat, found from one batch and tested in later ones."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.run.couples import repeated_distance


def rows_of(seed, number, period):
    """Return ``number`` rows of two tokens, the first ``period`` of them again and again."""
    rows = [tuple(row) for row in np.random.default_rng(seed).integers(0, 3, (period, 2)).tolist()]
    return [rows[i % period] for i in range(number)]


@pytest.mark.parametrize("period", [10, 16, 24])
def test_a_period_is_found_in_both_calls(period):
    assert repeated_distance((rows_of(1, 64, period), rows_of(2, 64, period))) == period
    assert repeated_distance((rows_of(1, 64, period), rows_of(2, 64, 64))) == 0


def test_independent_rows_and_equal_rows_do_not_repeat():
    assert not any(repeated_distance((rows_of(2 * k, 32, 32), rows_of(2 * k + 1, 32, 32))) for k in range(50))
    assert repeated_distance(([(0, 1)] * 32,) * 2) == 0
    assert repeated_distance(([(0, 1)],) * 2) == 0
