"""What the README and the pages that it names first show is what the commands print."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from specverify.checks import Conditions
from specverify.checks.samples_fit_law import fit_rows
from specverify.cli import app
from specverify.report.statistics_text import cells
from specverify.run.stats import USUAL, plan_statistics
from specverify.subjects.subject import Method
from specverify.testing import SpeculationRefuted
from specverify.trust.black_box_mutants import MUTANTS, decode
from specverify.trust.black_box_page import law
from tools.pages.picture import picture

ROOT = Path(__file__).parents[2]
CODE = "docs/check-your-code.md"


def page(name):
    return (ROOT / name).read_text("utf-8")


def blocks(name, language=""):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page(name), flags=re.DOTALL | re.MULTILINE)
    return [text for tag, text in found if tag == language]


def lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_the_readme_is_short_and_shows_what_a_page_of_findings_shows():
    assert len(page("README.md").splitlines()) < 120
    (shown,) = [block for block in blocks("README.md") if block.startswith("Let ")]
    assert shown.rstrip() in page("docs/findings/tree-verifiers.md")


def test_the_first_example_fails_as_shown(tmp_path, monkeypatch):
    (example,) = blocks("README.md", "python")
    (tmp_path / "test_sampler.py").write_text(example, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SpeculationRefuted) as raised:
        importlib.import_module("test_sampler").test_verify()
    (shown,) = [block for block in blocks("README.md") if block.startswith("test_sampler:")]
    assert str(raised.value).splitlines()[0] == shown.strip()


def test_every_figure_of_the_comparison_is_that_of_the_kill_matrix():
    bugs, row = re.findall(r"^\| all (\d+) \|(.*)$", page("docs/kill-matrix.md"), re.MULTILINE)[0]
    totals = re.findall(rf"(\d+) of {bugs}", row)
    table = page("README.md").split("## Comparison")[1].split("## What it")[0]
    assert f"killed, of {bugs} |" in table
    assert re.findall(r"\d+", " ".join(re.findall(r"\| ([\d, ]+) \|$", table, re.MULTILINE))) == totals


def test_every_page_that_the_readme_names_exists():
    named = re.findall(r"\]\(([^)#]+)(?:#([^)]+))?\)", page("README.md"))
    assert len(named) > 20
    for file, part in named:
        headings = re.findall(r"^#+ (.+)$", page(file), flags=re.MULTILINE) if file.endswith(".md") else ()
        assert (ROOT / file).exists()
        assert not part or part in {heading.lower().replace(" ", "-") for heading in headings}


def test_the_picture_is_what_would_be_drawn_now():
    assert picture() == page("docs/assets/laws.svg")


def test_the_decoder_to_check_is_checked_as_shown(tmp_path, monkeypatch):
    example = next(block for block in blocks(CODE, "python") if "def one_round" in block)
    (tmp_path / "my_decoder.py").write_text(example, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    printed = CliRunner().invoke(app, ["verify", "my_decoder:one_round"]).output
    shown = next(block for block in blocks(CODE) if "$ specverify verify my_decoder:one_round" in block)
    assert lines(shown)[1:] == lines(printed)


def test_the_black_box_is_refuted_as_shown():
    """The server of the example decodes with a planted bug: a rejected draft is replaced from p."""
    example = next(block for block in blocks(CODE, "python") if "def test_my_server" in block)
    shown = next(block for block in blocks(CODE) if "samples fit law - refuted" in block)
    bug = MUTANTS["replacement drawn from p"]
    scope = {"my_server": lambda prompt, seed, n: decode(bug, seed, n), "prompt": (), "law": law()}
    exec(example, scope)
    with pytest.raises(SpeculationRefuted) as raised:
        scope["test_my_server"]()
    assert lines(shown) == lines(str(raised.value).partition("<lambda>: ")[2])


def test_every_option_and_name_that_is_shown_exists():
    usage = next(block for block in blocks(CODE) if "specverify list" in block)
    for command, rest in re.findall(r"^specverify ([\w-]+)(.*)$", usage, flags=re.MULTILINE):
        helped = CliRunner().invoke(app, [command, "--help"], terminal_width=200).output
        for option in set(re.findall(r"--\w+", rest)):
            assert option in helped
    reference = __import__("reference")
    for name in re.findall(
        r"`(\w+)`", page("docs/api/reference.md").partition("## Use it")[2].partition("## Names")[0]
    ):
        assert hasattr(reference, name) or name in {"target", "draft"}


def test_rows_of_the_statistics_table_are_those_of_this_code():
    """The divided rows of the registry, which take tenths of a second each; the others need minutes or an engine."""
    shown = next(block for block in blocks("docs/statistics.md") if block.startswith("alarm budget"))
    tests = int(re.search(r"over (\d+) planned tests", shown)[1])
    rows = [re.split(r" {2,}", line.strip()) for line in shown.splitlines() if line.startswith(" reference:")]
    divided = [row for row in rows if row[3] == Method.DIVIDED]
    plan = plan_statistics(1e-6, 0, USUAL._replace(finer=None))
    assert tests >= plan.budget.parts
    conditions = Conditions(seed=plan.seed, false_alarm=1e-6 / tests, miss=plan.miss)
    wanted = {row[0] for row in divided}
    computed = [
        list(cells(row))
        for item in plan.settings
        if item.subject in wanted and not item.control
        for row in fit_rows(item.subject, item.setting, conditions)
    ]
    assert divided == computed
    assert len(divided) >= 5
