"""Rows and numbers in messages."""

from __future__ import annotations

import pytest

from specverify.checks.explaining.wording import rows_apart, short_row

HALVES = [0.0] * 20
HALVES[17] = HALVES[3] = 0.5
SPREAD = [0.05] * 20


@pytest.mark.parametrize(
    ("row", "shown"),
    [
        ((0.5, 0.5), "(0.5, 0.5)"),
        (HALVES, "(3: 0.5, 17: 0.5, others 0)"),
        (SPREAD, f"({', '.join(f'{token}: 0.05' for token in range(8))}, 12 others)"),
    ],
)
def test_a_long_row_is_shown_by_its_largest_entries(row, shown):
    assert short_row(row) == shown


def test_two_long_rows_are_shown_by_the_entries_that_differ():
    other = [0.04, *SPREAD[1:-1], 0.06]
    one, shown = rows_apart(SPREAD, other)
    assert one.startswith("(0: 0.05, 1: 0.05")
    assert shown.startswith("(0: 0.04, 1: 0.05")
    assert one.endswith("19: 0.05, 12 others)")
    assert shown.endswith("19: 0.06, 12 others)")
