"""Programs as other people write them: a right one is decided, its wrong twin is refuted."""

from __future__ import annotations

import pytest

from specverify.base.verdict import Status
from specverify.checks.coupled_runs import coupled
from specverify.checks.fed_runs import fed
from specverify.intercept.everywhere import answered_everywhere
from test_support.soundness.stranger_coins import COINS
from tools.pages.sources_page import RIGHT, WRONG, verdicts


@pytest.mark.thorough(keep=4)
@pytest.mark.parametrize("name", COINS)
def test_runs_as_they_are_end_as_examined_ones(name):
    toss = COINS[name](RIGHT)

    def program(draws):
        with answered_everywhere(draws):
            return bool(toss())

    there, back = coupled(program, 12), fed(program, 8)
    assert (there.parted, there.unrecorded, there.runs + len(there.ties)) == ("", "", 12)
    assert (back.parted, back.unrecorded) == ("", "")


@pytest.mark.thorough
@pytest.mark.parametrize("name", COINS)
def test_a_right_program_holds_and_its_wrong_twin_is_refuted(name):
    right, wrong = (verdicts(COINS[name], p)["law_is_target"] for p in (RIGHT, WRONG))
    assert (right.status, wrong.status) == (Status.HOLDS, Status.REFUTED), (right.statement, wrong.statement)
