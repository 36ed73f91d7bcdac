"""The kill matrix as a page: every row, and cells that are computed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from specverify.mutants import left_out, mutants, suspects
from specverify.trust.kill_page import kill_page
from specverify.trust.kills import KillMatrix
from test_support.kill_rows import FEW, few_rows

pytestmark = pytest.mark.xdist_group("kills")

PAGE = Path(__file__).parents[2] / "docs" / "kill-matrix.md"


@pytest.fixture
def rows():
    return few_rows()


@pytest.mark.thorough
def test_the_page_tells_of_every_row_and_of_what_no_check_kills(rows):
    page = kill_page(KillMatrix((rows[0]._replace(killed_by="eos_is_final"), *rows[1:]), ()), {"a record": "a reason"})
    assert "2 of 3 planted bugs are killed by the check they name" in page
    assert "SURVIVES eos is final" in page
    assert "**acceptance is optimal**" in page
    assert "* a record: a reason" in page


def test_the_committed_page_holds_every_bug_and_says_of_a_few_what_is_computed_now(rows):
    """The whole of it is `nox -s pages -- kills`, which must leave no difference."""
    page = PAGE.read_text("utf-8")
    found = {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")}
    assert {item.name for item in (*mutants(), *suspects())} <= found
    told = [line for line in kill_page(KillMatrix(rows, ()), {}).splitlines() if line.startswith("| ")]
    told = [line for line in told if line.split(" | ")[0].removeprefix("| ") in FEW]
    assert len(told) == len(FEW)
    assert all(line in page for line in told)
    assert all(f"* {citation}: {why}" in page for citation, why in left_out().items())
    assert f"{len(mutants())} of {len(mutants())} planted bugs are killed by the check they name" in page
    assert "SURVIVES" not in page
