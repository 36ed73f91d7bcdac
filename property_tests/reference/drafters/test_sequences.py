"""Sequences of several draft models as one tree, level by level."""

from __future__ import annotations

import pytest

from reference.drafters.sequences import sequences_drafter
from specverify.laws.draws import Tape
from test_support.laws.rational import P, Q, always


def test_sequences_stand_level_by_level():
    draft = sequences_drafter((always(P), always(Q)), 2).propose(Tape(0), None, (0,), 9, None)
    assert draft.parents == (-1, -1, 0, 1)
    assert [pmf is P for pmf in draft.pmfs] == [True, False, True, False]
    with pytest.raises(ValueError, match="depth is -1, expected an integer >= 0"):
        sequences_drafter((always(P),), -1)
    with pytest.raises(ValueError, match="there are no draft models"):
        sequences_drafter((), 1)
