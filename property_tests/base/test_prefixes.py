"""The length of a common prefix."""

from __future__ import annotations

import pytest

from specverify.base.prefixes import common_length


@pytest.mark.parametrize(
    ("one", "other", "length"),
    [((), (1,), 0), ((1, 2), (1, 2, 3), 2), ((1, 2, 3), (1, 2, 3), 3), ((1, 2, 3), (1, 0, 3), 1), ((2,), (1,), 0)],
)
def test_it_ends_at_the_first_difference_or_with_the_shorter(one, other, length):
    assert common_length(one, other) == common_length(other, one) == length
