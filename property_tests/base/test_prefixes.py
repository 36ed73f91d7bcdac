"""The length of a common prefix."""

from __future__ import annotations

import pytest

from specverify.base.prefixes import begins, common_length, inserted


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [((), (1,), 0), ((1, 2), (1, 2, 3), 2), ((1, 2, 3), (1, 2, 3), 3), ((1, 2, 3), (1, 0, 3), 1), ((2,), (1,), 0)],
)
def test_it_ends_at_the_first_difference_or_with_the_shorter(one, other, length):
    assert common_length(one, other) == common_length(other, one) == length


def test_begins():
    assert begins((1, 2, 3), (1, 2))
    assert not begins((1, 2), (1, 2, 3))


@pytest.mark.parametrize(
    ("longer", "tokens"),
    [((0, 1, 7, 8, 2), (7, 8)), ((0, 1, 2, 7), ()), ((7, 0, 1, 2), ()), ((0, 1, 2), ()), ((0, 3, 1, 3), ())],
)
def test_what_is_inserted_behind_the_prompt_and_before_the_end_is_found(longer, tokens):
    assert inserted(longer, (0, 1, 2), (0,)) == tokens
