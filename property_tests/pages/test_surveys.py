"""A survey goes on where it was ended; its table begins with what is refuted, and what became of that when repeated."""

from __future__ import annotations

import json
import runpy
import subprocess
from collections import Counter
from pathlib import Path

import pytest

SURVEYS = Path(__file__).parents[2] / "tools" / "surveys"
SURVEY = runpy.run_path(str(SURVEYS / "survey.py"))
MATRIX = runpy.run_path(str(SURVEYS / "matrix.py"))


def verdict(name, status):
    figures = {"samples": 100, "tv_detectable": 0.05, "tv_observed": 0.2, "activity": [f"{name}: 3 drafts"]}
    told = {"subject": f"mlx:all/{name}", "status": status, "statement": "it takes too long | really\nmore"}
    return told | {"figures": figures, "seconds": 1.5, "counterexample": {"because": ["draft 1"]}}


def lines(found, repeats):
    return SURVEY["table"](found, repeats).splitlines()


def test_a_row_says_how_often_it_was_refuted_again_and_how_often_that_was_not_decided():
    found = [verdict("right", "holds"), verdict("slow", "unknown"), verdict("wrong", "refuted")]
    repeats = [[verdict("wrong", status)] for status in ("refuted", "unknown", "refuted")]
    said = lines(found, repeats)
    assert said[0] == "1 refuted, 0 unusable, 1 unknown, 1 holds; 4 seconds."
    assert [line.split(" | ")[0] for line in said[4:]] == ["| wrong", "| slow", "| right"]
    assert "refuted in 2 of 3 repeats, not decided in 1; draft 1" in said[4]
    assert "it takes too long / really" in said[5]


def test_repeats_that_are_all_decided_are_counted_alone():
    wrong = verdict("wrong", "refuted")
    assert "refuted in 1 of 2 repeats; draft 1" in lines([wrong], [[wrong], [verdict("wrong", "holds")]])[4]


def test_a_row_that_holds_without_a_draft_is_not_covered():
    idle = verdict("idle", "holds")
    idle["figures"]["activity"] = ["idle: nothing was drafted"]
    said = lines([verdict("right", "holds"), idle], [])
    assert said[0] == "0 refuted, 0 unusable, 0 unknown, 1 holds, 1 not covered; 3 seconds."
    assert said[-1].startswith("| idle | not covered | 100 |")


def test_the_quick_part_has_what_is_refuted_and_some_rows_of_each_way(tmp_path):
    page = tmp_path / "page.md"
    statuses = {"plain/a": "refuted", **dict.fromkeys("bcdefg", "holds"), "h": "not covered"}
    found = [verdict(name if "/" in name else f"plain/{name}", status) for name, status in statuses.items()]
    for samples, row in enumerate(found):
        row["figures"]["samples"] = samples
    page.write_text(f"words\n<!-- table -->\n{SURVEY['table'](found, [])}<!-- end -->\n", "utf-8")
    rows = SURVEY["page_rows"](page)
    assert len(rows) == len(found)
    assert rows["plain/g"] == ("holds", 6)
    assert sorted(SURVEY["quick_rows"](rows)) == ["plain/a", "plain/b", "plain/c", "plain/d"]


@pytest.mark.parametrize("page", sorted((Path(__file__).parents[2] / "docs" / "findings").glob("*-*.*.*.md")))
def test_every_page_of_rows_has_a_quick_part(page):
    if "\n<!-- table -->\n" in page.read_text("utf-8"):
        rows = SURVEY["page_rows"](page)
        ways = {name.partition("/")[0] for name, row in rows.items() if row.verdict == "holds"}
        quick = SURVEY["quick_rows"](rows)
        assert ways <= {name.partition("/")[0] for name in quick}
        assert all(name in quick for name, row in rows.items() if row.verdict == "refuted")


def test_a_quick_part_is_compared_with_the_page():
    rows = {"a": SURVEY["PageRow"]("holds", 9), "b": SURVEY["PageRow"]("refuted", 9)}
    now = [verdict("a", "refuted"), verdict("b", "refuted"), verdict("c", "holds")]
    assert SURVEY["differences"](rows, now).splitlines() == [
        "1 of 3 verdicts are those of the page",
        "a: holds -> refuted",
        "c: not on the page -> holds",
    ]


@pytest.fixture
def asked(monkeypatch):
    """What was asked of ``specverify verify``, which is stood in for; it is ended at the row called ``ended``."""
    commands = []

    def run(command, check):
        commands.append(command)
        file = Path(command[command.index("--json") + 1])
        if "ended" in command[4]:
            file.write_text("{", "utf-8")
            raise KeyboardInterrupt
        found = verdict(command[4].partition("/")[2], "holds")
        nothing = verdict("nothing", "not applicable")
        file.write_text(json.dumps({"verdicts": [found, nothing]}), "utf-8")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_rows_of_one_way_share_a_process_and_one_that_ends_it_is_unusable(monkeypatch, tmp_path):
    asked, names = [], ["vllm:all/plain/a", "vllm:all/plain/b", "vllm:all/draft/a"]

    def run(command, check):
        rows = [word for word in command if word.startswith("vllm:")]
        asked.append(rows)
        for name in rows:
            if name == "vllm:all/plain/b":
                return subprocess.CompletedProcess(command, -9)
            file = SURVEY["report_file"](tmp_path, name)
            file.write_text(json.dumps({"verdicts": [verdict(name.partition("/")[2], "holds")]}), "utf-8")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    found = SURVEY["report"](names, 0, tmp_path, 9.0, together=True)
    assert asked == [["vllm:all/plain/a", "vllm:all/plain/b"], ["vllm:all/draft/a"]]
    assert [each["status"] for each in found] == ["holds", "unusable", "holds"]
    assert found[1]["statement"] == "its process ended with status -9"


def test_a_survey_goes_on_where_it_was_ended(asked, tmp_path):
    report, folder = SURVEY["report"], tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        report(["mlx:all/a/b", "mlx:all/ended"], 3, folder, 9.0)
    assert [command[4] for command in asked] == ["mlx:all/a/b", "mlx:all/ended"]
    asked.clear()
    again = report(["mlx:all/a/b", "mlx:all/c"], 3, folder, 9.0)
    assert [found["subject"] for found in again] == ["mlx:all/a/b", "mlx:all/c"]
    assert [command[4] for command in asked] == ["mlx:all/c"]


def test_the_rows_of_a_survey_share_one_alarm_budget_and_have_its_seed(asked, tmp_path):
    SURVEY["report"](["mlx:all/a", "mlx:all/b"], 3, tmp_path, 9.0)
    for command in asked:
        assert command[command.index("--alarm") + 1] == "5e-07"
        assert command[command.index("--seed") + 1] == "3"


def test_what_cannot_be_examined_ends_a_survey(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(subprocess, "run", lambda command, check: None)
    with pytest.raises(SystemExit, match="mlx:all/a cannot be examined"):
        SURVEY["report"](["mlx:all/a"], 0, tmp_path, 9.0)


def test_the_matrix_is_that_of_the_pages_and_its_links_lead_to_their_rows():
    page = (MATRIX["DOCS"] / "engines.md").read_text("utf-8")
    assert f"<!-- matrix -->\n{MATRIX['matrix']()}<!-- end -->\n" in page
    assert "| lookup | [2 hold](findings/llama-cpp-python-0.3.36.md#every-row) | [1 hold, 1 refuted](" in page
    for page in MATRIX["DOCS"].glob("findings/*.md"):
        if MATRIX["counted"](page):
            assert "\n## Every row\n" in page.read_text("utf-8")


def test_the_matrix_counts_each_row_that_has_a_verdict_once(tmp_path):
    page = tmp_path / "page.md"
    rows = (
        ("plain/greedy", "holds"),
        ("plain/a seed again", "refuted"),
        ("draft/top-k 2", "unusable"),
        ("draft/x", "not covered"),
    )
    table = "".join(f"| {name} | {verdict} | 9 |\n" for name, verdict in rows)
    page.write_text(f"| plain/unmarked | holds |\n\n<!-- tables -->\n{table}", "utf-8")
    assert MATRIX["counted"](page) == {}
    page.write_text(f"words\n\n<!-- table -->\n{table}", "utf-8")
    expected = {"plain": {"greedy text": {"holds": 1}, "seeds": {"refuted": 1}}, "draft": {"law": {"unusable": 1}}}
    assert MATRIX["counted"](page) == expected
    assert MATRIX["cell"](Counter(holds=2, unusable=1), page) == "[2 hold, 1 raise](findings/page.md#every-row)"
    assert MATRIX["cell"](Counter(), page) == ""


@pytest.mark.parametrize(
    ("option", "promise"),
    [
        ("greedy, an end", "greedy text"),
        ("at least three tokens", "ends"),
        ("others beside, seeds", "beside other requests"),
        ("confidences", "returned values"),
        ("log-probabilities asked for", "law"),
        ("seeds", "law"),
    ],
)
def test_a_row_belongs_to_one_promise(option, promise):
    assert MATRIX["promise_of"](option) == promise
