"""Bands of a panel contain the right value and not a wrong one."""

from __future__ import annotations

from specverify.report.runs.panels import outcomes_panel
from test_support.report import runs


def test_bands_hold_what_is_right_and_not_what_is_wrong():
    law, right, wrong = (0.3, 0.2, 0.5), (310, 195, 495), (400, 195, 405)
    assert not any(row.outside for row in outcomes_panel("samples_fit_law", runs.tally(right, 1000, law)).rows)
    found = outcomes_panel("samples_fit_law", runs.tally(wrong, 1000, law)).rows
    assert [row.outside for row in found] == [True, False, True]
    sampled = outcomes_panel("samples_fit_reference", runs.tally(wrong, 1000, law, sampled=True))
    assert not any(row.outside for row in sampled.rows)
    assert sampled.expected_as == "in the reference"
