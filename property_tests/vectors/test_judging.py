"""Numbers of an answer may be rounded, and no more."""

from __future__ import annotations

import pytest

from specverify.vectors.judging import equal_laws
from specverify.vectors.vector import Outcome

pytestmark = pytest.mark.xdist_group("vectors")


def test_numbers_may_be_rounded_and_no_more():
    law = {(0,): "1/3", (1,): "2/3"}
    for shift, outcome in (
        (0, Outcome.PASSED),
        (1e-16, Outcome.PASSED),
        (1e-8, Outcome.UNDECIDED),
        (1e-3, Outcome.FAILED),
    ):
        found = {(0,): 1 / 3 + shift, (1,): 2 / 3 - shift}
        assert equal_laws(law, found, 2).outcome is outcome
    assert equal_laws(law, {(0,): "333333333/1000000000", (1,): "2/3"}, 2).outcome is Outcome.FAILED
    assert equal_laws(law, {(0,): "1/3", (1,): "two thirds"}, 2).outcome is Outcome.FAILED
    assert equal_laws(law, {(0,): -1 / 3, (1,): 4 / 3}, 2).outcome is Outcome.FAILED
    for strange in ("1e999999999", "1/0", "-1/3", "nan", "9" * 5000, "1_0", "", 10**400, True, None, [], "\u0663"):
        assert equal_laws(law, {(0,): strange, (1,): "2/3"}, 2).outcome is Outcome.FAILED
