"""Jacobi sweeps: every sweep makes at least one more token final."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from property_tests.reference.drafters.test_lookahead import random_model
from reference import Task, greedy_law
from reference.drafters.jacobi import padding, sweep


@given(st.integers(0, 300), st.integers(1, 8))
def test_at_least_one_more_token_is_final_after_every_sweep(seed, block):
    target = random_model(seed)
    (text,) = greedy_law(Task(target, horizon=block), (0,))
    guess = padding((0,), block)
    for sweeps in range(1, block + 1):
        guess = sweep(target, (0,), guess)
        assert guess[:sweeps] == text[:sweeps]
    assert sweep(target, (0,), guess) == guess
