"""The cache of plans, keyed by the values of two pmfs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reference.remembered import by_values


def test_equal_pmfs_share_one_answer_and_other_values_or_dtypes_do_not():
    calls = []

    def plan(p, q, count, option):
        calls.append((p.tolist(), count, option))
        return len(calls)

    cached = by_values(plan)
    row = np.array([0.5, 0.5])
    exact = np.array([Fraction(1, 2)] * 2, dtype=object)
    assert cached(row, row, 2, 0) == cached(row.copy(), row.copy(), 2, 0) == 1
    others = [(row, row, 3, 0), (row, row, 2, 1), (exact, exact, 2, 0), (row, row[::-1] * 2, 2, 0)]
    answers = [cached(*arguments) for arguments in others]
    assert answers == [2, 3, 4, 5]
    assert len(calls) == 5
