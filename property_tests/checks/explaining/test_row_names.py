"""The names of rows that a wrong program uses."""

from __future__ import annotations

import pytest

from specverify.checks.explaining.row_names import text_difference


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ((0, 3, 2), "which keeps the rejected draft 3"),
        ((0, 3, 4, 2), "which keeps the rejected draft 3"),
        ((0, 3), "another text"),
        ((4, 2), "without the first token"),
        ((2,), "without the first 2 tokens"),
        ((0,), "without the last 2 tokens"),
        ((0, 4, 1), "with token 1 in place of 2"),
    ],
)
def test_the_text_of_a_wrong_row_is_told_by_its_difference(text, words):
    """The right text is (0, 4, 2), in which 4 replaces the rejected draft 3."""
    assert text_difference(text, (0, 4, 2), ((0, 3),)) == f" ({words})"
