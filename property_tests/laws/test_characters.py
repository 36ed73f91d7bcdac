"""The model of letters that notebooks train: pmfs, blended by hand, and what it cannot read."""

from __future__ import annotations

import numpy as np
import pytest

from specverify.laws.characters import letter_model, source_of, trained


def test_rows_are_those_of_the_rule():
    letters = trained("abab", "c")
    assert letters.alphabet == ("a", "b", "c")
    none = (np.array([2.0, 2.0, 0.0]) + 2 / 3) / (4 + 2)
    after_a = (np.array([0.0, 2.0, 0.0]) + none) / (2 + 1)
    row = letter_model(letters, longest=1, reads=0)(letters.tokens("ca"))
    assert np.abs(row - after_a).max() < 1e-15
    assert abs(row.sum() - 1) < 1e-15


def test_what_was_read_counts():
    letters = trained("abab", "c")
    blind, reader = (letter_model(letters, longest=1, reads=reads) for reads in (0, 5))
    text = letters.tokens("acaca")
    assert reader(text)[2] > blind(text)[2]
    assert letters.text(text) == "acaca"


def test_what_cannot_be_read_is_said():
    with pytest.raises(ValueError, match=r"the alphabet lacks \['z'\]"):
        trained("ab").tokens("z")
    with pytest.raises(ValueError, match="sys has no source code here"):
        source_of("sys")
    assert "def wrap(" in source_of("textwrap")
