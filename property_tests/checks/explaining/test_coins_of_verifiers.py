"""A coin that a verifier draws by itself is read as a test, also in a decoder whose drafts alone have labels."""

from __future__ import annotations

import numpy as np

from specverify.checks.explaining.readings import ROLES, Models, items_of_decisions
from specverify.checks.explaining.round_readings import reading_of
from specverify.laws.draws import BELOW, Decision

FIRST, SURE = np.array([0.7, 0.2, 0.1]), np.array([0.0, 0.0, 1.0])
"""The first row of the target; all later ones, and all rows of the draft model, have token 2."""


def target(text):
    return FIRST if text == (0,) else SURE


def read(bound, outcome):
    coin = ("numpy.random.random", "mine.py:3", 0, BELOW, 1)
    decisions = (Decision(("draft", 0), (0.0, 0.0, 1.0), 2), Decision(coin, (bound, 1 - bound), outcome))
    models = Models(target, lambda text: SURE, (0,), 2, roles=ROLES, guesses=False, open_end=False)
    return reading_of(items_of_decisions(decisions), models, (2, 2))


def test_a_right_bound_is_no_fault():
    assert not read(0.1, 0).fault


def test_a_wrong_bound_is_named():
    assert "tested with u < 0.15, expected u < 0.1 = min(1, p/q) (mine.py:3)" in read(0.15, 0).fault
