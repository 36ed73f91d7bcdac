"""Outcomes that show a fault: one, unless several are visible much sooner."""

from __future__ import annotations

from specverify.run.faults import _likeliest


def test_one_outcome_is_shown_unless_several_are_seen_much_sooner():
    expected = {(token,): 0.01 for token in range(100)}
    lifted = {(token,): 0.011 if token < 50 else 0.009 for token in range(100)}
    assert len(_likeliest(lifted, expected, sorted(lifted), "").wrong) == 50
    assert _likeliest({(0,): 0.6, (1,): 0.4}, {(0,): 0.5, (1,): 0.5}, [(0,), (1,)], "").wrong == ((0,),)
