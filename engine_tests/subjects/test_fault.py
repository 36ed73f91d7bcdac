"""The number of calls that shows a fault."""

from __future__ import annotations

from specverify.subjects.fault import FEWEST_CALLS, calls_to_see


def test_calls_are_planned_six_standard_errors_apart():
    assert calls_to_see(0.0, 1.0) == 1
    assert calls_to_see(0.0, 0.9) == FEWEST_CALLS
    assert calls_to_see(0.0, 0.01) == 2000  # once is enough of what should never be
    assert calls_to_see(1e-9, 0.01) > 3000
    assert calls_to_see(0.5, 0.55) == 3600
    assert calls_to_see(0.3, 0.3 + 1e-5) > 10**9
