"""The count of false alarms of promises: its engines are right, and a wrong one is counted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.pages import promise_alarms
from tools.pages.promise_alarms import CHECKS, RUNS, Engine, alarms_table, status_of, with_rows, with_table

PAGE = Path(__file__).parents[2] / "docs" / "false-alarms.md"


def test_the_page_has_a_row_of_each_promise_and_no_alarm():
    text = PAGE.read_text("utf-8")
    for promise, check in CHECKS.items():
        counted = re.search(rf"^\| `{promise}` \| `{check}` \| (\d+) \| 0 \|", text, re.MULTILINE)
        assert counted is not None
        assert int(counted[1]) >= RUNS


@pytest.mark.filterwarnings("default")  # NumPy warns of a torch number in searchsorted
@pytest.mark.thorough(keep=8)
@pytest.mark.usefixtures("named_checks_alone")
@pytest.mark.parametrize("promise", CHECKS)
def test_a_random_right_engine_is_not_refuted(promise):
    assert status_of(promise, 1000)[0] == "holds"


def test_a_wrong_engine_is_refuted_and_counted(monkeypatch):
    right = Engine.statistics

    def wrong(self, prompt, new, counts):
        return {**right(self, prompt, new, counts), "usage": {"completion_tokens": len(new) + 1}}

    monkeypatch.setattr(Engine, "statistics", wrong)
    result = status_of("statistics", 0)
    assert result[0] == "refuted"
    monkeypatch.setattr(promise_alarms, "status_of", lambda *_: result)
    table = alarms_table(3, ["statistics"])
    assert "| `statistics` | `statistics_match` | 3 | 3 | 0 |" in table
    assert table in with_table("<!-- computed: promises -->\nold\n<!-- end -->", table)
    page = "| `seed` | `seed_repeats` | 5 | 0 |\n| `statistics` | `statistics_match` | 5 | 0 |\n"
    written = with_rows(page, table)
    assert written.splitlines()[0] == page.splitlines()[0]
    assert "| `statistics` | `statistics_match` | 3 | 3 | 0 |" in written
