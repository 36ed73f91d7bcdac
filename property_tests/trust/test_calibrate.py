"""What somebody's own test is worth: known answers, and two tests of other projects."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from specverify.testing import calibrate

P = np.array([0.1, 0.2, 0.3, 0.4])
SAMPLES = 2000


def chi_square(counts):
    return float(((counts - SAMPLES * P) ** 2 / (SAMPLES * P)).sum())


def test_a_test_that_is_as_declared():
    found = calibrate(
        chi_square, P, samples=SAMPLES, threshold=chi2.isf(0.05, 3), takes="counts", declared=0.05, runs=2000
    )
    assert found.low <= 0.05 <= found.high
    assert found.as_declared
    half = found.seen[0]
    assert half.accepted < half.refuted < 0.1
    assert half.refuted == pytest.approx(math.sqrt(15 / (4 * SAMPLES)), rel=0.4)


def test_a_test_that_alarms_more_often_than_declared_is_told_so():
    found = calibrate(chi_square, P, samples=SAMPLES, threshold=chi2.isf(0.05, 3), takes="counts", declared=0.001)
    assert found.as_declared is False
    assert "NOT the declared 0.001" in str(found)


def test_a_test_that_cannot_fail_sees_nothing():
    found = calibrate(lambda sample: True, P, samples=100, runs=50)
    assert (found.alarms, [item.refuted for item in found.seen]) == (0, [None, None])
    assert "even at its end it passes" in str(found)


def test_an_assertion_is_an_alarm_and_nothing_returned_is_none():
    def order_kept(sample):
        counts = np.bincount(sample, minlength=4)
        assert counts[3] > counts[0]

    found = calibrate(order_kept, P, samples=500, runs=200)
    assert found.alarms == 0
    assert found.seen[1].refuted is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"samples": 0}, "samples is 0"),
        ({"samples": 10, "takes": "rows"}, "takes is 'rows', expected one of 'samples', 'counts'"),
        ({"samples": 10, "threshold": math.nan}, "threshold is nan, expected a number"),
        ({"samples": 10, "two_samples": True}, "statistic takes"),
        ({"samples": 10, "declared": 0}, "declared is 0, expected a probability"),
    ],
)
def test_what_cannot_be_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        calibrate(lambda sample: True, P, **given)
