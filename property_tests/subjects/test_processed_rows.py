"""Processed rows against the reference, and cuts that rounding may decide."""

from __future__ import annotations

import numpy as np
import pytest

from reference import warped
from specverify.laws.rounding import FLOAT32
from specverify.subjects.processed_rows import processed_row


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0, 1.5])
@pytest.mark.parametrize(
    "cut", [{}, {"top_k": 3}, {"top_p": 0.8}, {"min_p": 0.2}, {"top_k": 5, "top_p": 0.9, "min_p": 0.05}]
)
def test_a_row_of_logits_is_what_the_reference_makes_of_it(temperature, cut):
    for seed in range(10):
        logits = np.random.default_rng(seed).normal(0, 2, 12)
        given = {"top_k": None, "top_p": None, "min_p": None} | cut
        found = processed_row(logits, temperature, *given.values(), FLOAT32)
        assert np.allclose(found.pmf, warped(lambda _, row=logits: row, temperature=temperature, **cut)(()), atol=1e-14)
        assert not np.any(found.doubtful)


def test_tokens_that_are_tied_at_a_cut_are_doubtful_and_others_are_not():
    logits = np.log(np.array([0.4, 0.2, 0.2, 0.1, 0.1]))
    tied = processed_row(logits, 1.0, 2, None, None, FLOAT32)
    assert tied.doubtful.tolist() == [False, True, True, False, False]
    nucleus = processed_row(logits, 1.0, None, 0.5, None, FLOAT32)
    assert nucleus.doubtful.tolist() == [False, True, True, False, False]
    assert nucleus.pmf[2] > 0
    assert not np.any(processed_row(logits, 1.0, None, 0.7, None, FLOAT32).doubtful[:1])
    assert np.any(processed_row(logits, 1.0, None, None, 0.5, FLOAT32).doubtful)


def test_a_mass_that_top_p_meets_within_rounding_is_doubtful():
    logits = np.log(np.array([0.5, 0.3, 0.2]))
    assert processed_row(logits, 1.0, None, 0.5 + 1e-9, None, FLOAT32).doubtful.tolist() == [False, True, False]
    assert not np.any(processed_row(logits, 1.0, None, 0.6, None, FLOAT32).doubtful)
