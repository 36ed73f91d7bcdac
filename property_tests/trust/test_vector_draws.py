"""Draws that a vector answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from specverify.trust.vector_draws import Forced, NotAsked

pytestmark = pytest.mark.xdist_group("vectors")


def test_draws_are_answered_by_the_vector():
    forced = Forced({"draft": [1], "coins": ["1/4"], "final": "3/4"})
    thirds = np.array([Fraction(1, 3)] * 3, dtype=object)
    assert forced.categorical(thirds, ("draft", 0)) == 1
    assert forced.categorical(np.array([0.5, 0.5]), ("accept", 0)) == 0
    assert forced.categorical(thirds, ("residual", 0)) == 2
    with pytest.raises(NotAsked):
        forced.categorical(np.array([1.0, 0.0, 0.0]), ("draft", 0))


def test_what_is_looked_up_is_taken_for_no_coin():
    forced = Forced({"draft": [1, 1], "coins": ["1/4", "3/4"], "final": "3/4"})
    coin = np.array([0.5, 0.5])
    assert forced.categorical(coin, ("random", "a.py:1", 0, 1)) == 0
    with pytest.raises(NotAsked):
        forced.categorical(coin, ("random", "a.py:9", 1, 1))
    with pytest.raises(NotAsked):
        forced.categorical(coin, ("random", "a.py:1", 1, 2))
