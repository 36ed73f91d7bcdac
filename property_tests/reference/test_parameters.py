"""Parameters of algorithms: decimals as rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reference import (
    accepted_ratio,
    confidence,
)
from reference.algorithms.bild import is_unsure
from reference.algorithms.typical_sampling_released import typical_part
from reference.lengths.gating import Gate, hard_ratio
from reference.parameters import exact
from test_support.laws.rational import Q, always, pmf


def test_a_threshold_written_as_a_decimal_is_that_decimal():
    """The float64 of 0.4 is above 2/5: a token of probability 2/5 would be neither typical nor confident."""
    even = pmf("2/5", "2/5", "1/5")
    assert typical_part(even, 0.4, 1.0).tolist() == pmf("1/2", "1/2", 0).tolist()
    assert typical_part(even.astype(float), 0.4, 1.0).tolist() == [0.5, 0.5, 0]
    assert not confidence(0.4, 2).stop_after(even, 0)
    assert confidence(0.4, 2).stop_after(even, 2)
    assert not is_unsure(even, 0.4)
    assert exact(0.4) == exact(np.float64(0.4)) == Fraction(2, 5)
    assert accepted_ratio(3, 1, 9, 0.1, 0.3).update(3, 10, 3) == 4
    assert hard_ratio(always(Q), Gate(nll=0.9), 5, Fraction(1, 5), 2).plan(None, (0, 2, 0, 0, 0, 0)).gamma == 2
