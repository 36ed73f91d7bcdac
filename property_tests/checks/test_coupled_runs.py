"""How a plain run and an examined run with the same numbers differ, in words."""

from __future__ import annotations

import pytest

from specverify.checks.coupled_runs import difference_of
from specverify.intercept.interpreters import Parted


@pytest.mark.parametrize(
    ("ended", "first", "said"),
    [
        ((1, 0), "", ""),
        ((1, 0), "a call differs", "both end alike; a call differs"),
        ((0, 0), "", "it ended with (1, 0), and examined with (0, 0)"),
        (ValueError("wrong"), "", "it ended with (1, 0), and examined with ValueError: wrong"),
        (
            Parted("a call differs"),
            "a call differs",
            "it ended with (1, 0), and examined with other draws; a call differs",
        ),
    ],
)
def test_two_runs_are_compared_in_a_sentence(ended, first, said):
    assert difference_of((1, 0), ended, first, "examined") == said
