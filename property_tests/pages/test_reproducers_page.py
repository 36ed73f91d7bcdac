"""Every refuted cell of the findings has a cause, every cause a script, and no script that was run failed to show it.

A cause is an entry of docs/findings/causes.toml.
"""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest

from specverify.checks import CHECKS

ROOT = Path(__file__).parents[2]
FOUND = runpy.run_path(str(ROOT / "tools" / "surveys" / "reproducers.py"))
CAUSES, PAGES, FINDINGS = FOUND["causes"](), FOUND["pages"](), ROOT / "docs" / "findings"
PAGE = (FINDINGS / "reproducers.md").read_text("utf-8")
PROSE = {"README.md", "reproducers.md", "transformers-5.23.0.md", "transformers-5.23.0-options.md"}
"""Pages that tell of cells in other words, or of none."""


def of_page(page):
    return [cause for cause in CAUSES if cause.page == page]


def told_of(cause):
    """Return what the page says of a cause, column by column."""
    section = PAGE.partition(f"## {cause.page}\n")[2].partition("\n## ")[0]
    (row,) = [line for line in section.splitlines() if line.startswith(f"| {cause.cause} |")]
    return [item.strip() for item in row.strip("|").split("|")]


@pytest.mark.parametrize("page", PAGES)
def test_every_refuted_cell_has_a_cause(page):
    cells = list(FOUND["refuted"](PAGES[page]))
    assert cells
    assert not [cell for cell in cells if FOUND["cause_of"](cell, of_page(page)) is None]


def test_every_page_of_findings_is_read():
    spotless = {file.name for file in FINDINGS.glob("*.md") if "\n0 refuted, 0 unusable, " in file.read_text("utf-8")}
    assert {file.name for file in FINDINGS.glob("*.md")} - PROSE - spotless == {
        next(file.name for file in FINDINGS.glob("*.md") if file.read_text("utf-8") == text) for text in PAGES.values()
    }


def test_as_many_cells_are_read_as_surveys_count():
    for page, text in PAGES.items():
        counted = re.search(r"^(\d+) refuted, (\d+) unusable", text, re.MULTILINE)
        if counted:
            assert len(list(FOUND["refuted"](text))) == sum(map(int, counted.groups())), page


def test_a_cell_that_nobody_has_looked_at_has_no_cause():
    transformers = of_page("transformers-table")
    for cell in (
        "law is target at assisted/plain",
        "stop law at dflash/plain",
        "support at boundary draws at mtp/plain",
    ):
        assert FOUND["cause_of"](cell, transformers) is None
    assert FOUND["cause_of"]("draft/greedy", of_page("mlx-lm")) is None


@pytest.mark.parametrize(
    "line", ["| plain/x | refuted | 9 | 0.1 | 0.2 |  |", "| plain/x | unusable |  |  |  | an error |"]
)
def test_a_cell_that_is_new_is_seen(line):
    head = "| what | verdict | samples | detectable TV | TV of the sample | remarks |\n|---|---|---:|---:|---:|---|\n"
    assert list(FOUND["refuted"](f"{head}{line}\n| plain/y | holds | 9 | 0.1 | 0.0 |  |\n")) == ["plain/x"]


@pytest.mark.parametrize(
    ("row", "said"),
    [("plain/x | holds", "1 of 1 hold"), ("plain/x | refuted", "0 of 1 hold"), ("plain/y | holds", "no such row")],
)
def test_a_cell_without_a_row_to_compare_with_does_not_count_as_a_failed_control(row, said):
    assert FOUND["without_speculation"](["draft/x"], f"| {row} | 9 |") == said


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: f"{cause.page}: {cause.cause}")
def test_every_cause_has_cells_and_no_script_that_was_run_failed_to_show_it(cause):
    assert len(FOUND["cells_of"]()[cause]) > 0
    _, cells, reproducer, shown, *_ = told_of(cause)
    assert int(cells) == len(FOUND["cells_of"]()[cause])
    assert cause.reproducer in reproducer
    assert shown in ({"not run"} if cause.reproducer.startswith("nox -s ") else {"1 of 1", "3 of 3", "not run"})


def test_scripts_are_files_or_of_cells_that_are_refuted():
    cells = set(FOUND["refuted"](PAGES["transformers-table"]))
    checks = {check.name: check.name.replace("_", " ") for check in CHECKS}
    for reproducer in {cause.reproducer for cause in CAUSES}:
        if reproducer.endswith((".py", ".mjs")):
            assert (FINDINGS / "reproducers" / reproducer).exists()
        elif reproducer.startswith("hf:all/"):
            row, _, check = reproducer.removeprefix("hf:all/").partition(" --check ")
            assert f"{checks[check or 'law_is_target']} at {row}" in cells
        else:
            assert reproducer.startswith("nox -s ")


def test_a_script_runs_from_an_empty_folder_once_or_with_three_seeds(tmp_path, monkeypatch):
    """What it printed last and how it ended is kept; what samples says so in its first lines."""
    file = FOUND["run"].__globals__["FINDINGS"] / "reproducers" / "x.py"
    monkeypatch.setitem(FOUND["run"].__globals__, "FINDINGS", tmp_path)
    (tmp_path / "reproducers").mkdir()
    body = "import os, sys; print(os.listdir(), sys.argv[1:]); sys.exit(1)"
    said = {}
    for doc in ("nothing is drawn", "SEED is a seed"):
        (tmp_path / "reproducers" / file.name).write_text(f'"""{doc}"""\n{body}', "utf-8")
        said[doc] = FOUND["run"](FOUND["Cause"]("page", "cause", file.name, ()), sys.executable)
    assert said["nothing is drawn"]["statuses"] == [1]
    assert said["nothing is drawn"]["said"] == "[] []"
    assert said["SEED is a seed"]["statuses"] == [1, 1, 1]
    assert said["SEED is a seed"]["said"] == "[] ['0']"
