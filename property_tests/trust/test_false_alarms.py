"""Counted false alarms: as declared, and more than declared."""

from __future__ import annotations

import pytest

from specverify.trust.alarms_page import alarms_page
from specverify.trust.false_alarms import CountedAlarms, exact_alarms, statistical_alarms

pytestmark = pytest.mark.xdist_group("kills")


def test_correct_subjects_are_accused_as_declared():
    stages = statistical_alarms(60, false_alarm=1e-2, seed=1)
    assert [item.runs for item in stages] == [60, 60]
    assert all(item.as_declared for item in stages)


def test_more_alarms_than_declared_are_seen():
    assert not CountedAlarms("", 1000, 0.01, 50, low=0.034, high=0.07).as_declared


def test_no_exact_check_accuses_a_random_correct_configuration():
    counted = exact_alarms(12, seed=2)
    assert (counted.accused, counted.examples) == (0, ())
    assert "| an exact check refutes | 12 | 0 | 0 | 0 |" in alarms_page([], counted, 1e-2, 2)
