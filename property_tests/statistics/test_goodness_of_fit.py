"""What the planned statistics cannot see, what they refute at once, the certificate, the budget, the refusals."""

from __future__ import annotations

import math
import re

import pytest

from specverify.statistics import (
    calibrated_level,
    detectable_tv,
    divide_alarm,
    goodness_of_fit,
    noncentrality_needed,
    perturbed,
    samples_for,
    samples_needed,
    tv_certificate,
)
from test_support.statistics.statistical import (
    UNIFORM,
)

# Outcomes of probability zero


@pytest.mark.parametrize("law", [{"x": 1.0}, {"x": 0.5, "y": 0.5}, {"x": 0.5, "y": 0.5, "z": 0.0}])
def test_an_outcome_of_probability_zero_refutes_at_once(law):
    assert goodness_of_fit({"x": 500_000, "z": 0}, {"x": 1.0}).p_value == 1.0
    fit = goodness_of_fit({"x": 500_000, "y": 500_000, "z": 1} if "y" in law else {"x": 999_999, "z": 1}, law)
    assert (fit.p_value, fit.statistic, fit.unsupported) == (0.0, math.inf, ("z",))
    assert fit.tv_observed == pytest.approx(1e-6, rel=1e-6)


# Refusals


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: detectable_tv(0, 2, 0.01, 0.01), "samples is 0, expected a whole number of at least 1"),
        (lambda: detectable_tv(10, 0, 0.01, 0.01), "cells is 0, expected a whole number of at least 1"),
        (lambda: detectable_tv(10, 2.5, 0.01, 0.01), "cells is 2.5, expected a whole number of at least 1"),
        (
            lambda: detectable_tv(10, 2, 0.0, 0.01),
            "false_alarm is 0.0, expected a probability strictly between 0 and 1",
        ),
        (lambda: detectable_tv(10, 2, 0.01, 1), "miss is 1, expected a probability strictly between 0 and 1"),
        (lambda: detectable_tv(10, 2, 0.5, 0.5), "false_alarm + miss is 1.0, expected less than 1: a coin"),
        (lambda: samples_needed(1.0, 2, 0.01, 0.01), "tv is 1.0, expected a probability strictly between 0 and 1"),
        (
            lambda: samples_needed(0.1, 1, 0.01, 0.01),
            "one cell cannot show a total variation of 0.1, expected at least",
        ),
        (lambda: noncentrality_needed(1, 0.01, 0.01), "cells is 1, expected a whole number of at least 2"),
        (lambda: goodness_of_fit({}, UNIFORM), "the counts hold no sample, expected at least one"),
        (lambda: goodness_of_fit({0: 0}, UNIFORM), "the counts hold no sample, expected at least one"),
        (lambda: goodness_of_fit({0: -1}, UNIFORM), "the count of 0 is -1, expected a whole number of at least 0"),
        (lambda: goodness_of_fit({0: 1.5}, UNIFORM), "the count of 0 is 1.5, expected a whole number of at least 0"),
        (lambda: goodness_of_fit({0: 1}, UNIFORM, 0.0), "minimum_expected is 0.0, expected a positive number"),
        (lambda: goodness_of_fit({"x": 9}, {"x": 0.9}), "the law's 1 probabilities sum to 0.9, expected 1 within"),
        (lambda: goodness_of_fit({"x": 9}, {}), "the law's 0 probabilities sum to 0.0, expected 1 within"),
        (lambda: goodness_of_fit({"x": 9}, {"x": 1.1, "y": -0.1}), "the law gives 'y' probability -0.1, expected"),
        (lambda: goodness_of_fit({"x": 9}, {"x": math.nan}), "the law gives 'x' probability nan, expected"),
        (
            lambda: samples_for(UNIFORM, 1e-7, 1e-3, 1e-3),
            "1000000000000 samples do not detect a total variation of 1e-07",
        ),
        (lambda: calibrated_level(1.0), "level is 1.0, expected a probability strictly between 0 and 1"),
        (
            lambda: perturbed(UNIFORM, 0.6),
            "cannot move the law by a total variation of 0.6, expected one between 0 and",
        ),
        (lambda: tv_certificate(1.5, 10, 2, 0.1), "tv_observed is 1.5, expected a total variation between 0 and 1"),
        (lambda: tv_certificate(0.5, 0, 2, 0.1), "samples is 0, expected a whole number of at least 1"),
        (lambda: tv_certificate(0.5, 10, 0, 0.1), "support_size is 0, expected a whole number of at least 1"),
        (lambda: divide_alarm(0.0, 3), "total is 0.0, expected a probability strictly between 0 and 1"),
        (lambda: divide_alarm(0.1, 0), "parts is 0, expected a whole number of at least 1"),
    ],
)
def test_a_refusal_says_what_was_wrong_and_what_was_expected(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        call()
