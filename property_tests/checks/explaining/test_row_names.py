"""The names of rows that a wrong program uses."""

from __future__ import annotations

import pytest

from specverify.checks.explaining.engine_rounds import is_by_other_text
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


def test_a_text_that_lacks_the_first_or_the_last_tokens_is_not_told_as_one_of_them():
    assert text_difference((0, 1), (0, 1, 0, 1), ()) == " (without the first or the last 2 tokens)"
    assert is_by_other_text("drawn from p after (0, 1) (without the first or the last 2 tokens)")
