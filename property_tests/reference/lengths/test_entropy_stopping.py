"""A draft that stops by entropy, at its threshold."""

from __future__ import annotations

from reference import (
    Plan,
)
from reference.lengths.entropy_stopping import entropy_stopping
from test_support.laws.rational import pmf


def test_a_stop_by_entropy_keeps_its_state_and_does_not_stop_at_its_threshold():
    rule, even = entropy_stopping(0.0, 1, 2), pmf("1", "0")
    assert rule.plan("kept", (0,)) == Plan(2, "kept")
    assert rule.update("kept", 1, 0) == "kept"
    assert not rule.stop_after(even, 0)
    assert rule.stop_after(pmf(".5", ".5"), 0)
