"""What every command prints on a terminal of 80 columns: it fits, words stay whole, and no bar is left behind."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from specverify.cli import app, options, word_commands
from specverify.report.wrapping import wrapped
from specverify.trust.kill_page import kill_table
from specverify.trust.kills import ControlRow, KillMatrix, MatrixCell, MutantRow
from test_support.run.screen import screen

COLUMNS = 80
COPIED = "  Again specverify replay "
"""Stays in one line, to be copied."""
RESULTS = {
    "format": "specverify vector results",
    "format_version": 1,
    "program": "somebody's program, whose name is longer than any line of a terminal that has eighty columns",
    "answers": [],
}
BARS = re.compile("[\u2800-\u28ff━╸╺]")


@pytest.fixture
def printed(monkeypatch):
    """Run a command as on a terminal of 80 columns; return its exit status and what is left on the screen."""
    monkeypatch.setattr(word_commands, "_width", lambda: COLUMNS)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("TERM", "xterm-256color")
    for console in (options.console, options.errors):
        monkeypatch.setattr(console, "_force_terminal", True)
        monkeypatch.setattr(console, "_width", COLUMNS)

    def run(*arguments):
        result = CliRunner().invoke(app, list(arguments), color=True)
        return result.exit_code, screen(result.stdout) + screen(result.stderr)

    return run


def fits(lines):
    """Whether no line is too wide, and no bar is left."""
    wide = [line for line in lines if len(line) > COLUMNS and not line.startswith(COPIED)]
    return wide == [] and not [line for line in lines if BARS.search(line)]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("verify", "mutant:residual-from-target", "--check", "law_is_target"), 1, "law_is_target"),
        (("verify", "reference:nasd", "--quick", "--check", "acceptance_is_optimal"), 0, "acceptance_is_optimal"),
        (("prove", "coupling", "--what", "residual"), 0, "proved: residual of coupling"),
        (("prove", "mutant:residual-from-target"), 1, "refuted"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_judged_fits(printed, arguments, status, said):
    if arguments[0] == "prove":
        pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')
    found, lines = printed(*arguments)
    assert fits(lines), [line for line in lines if len(line) > COLUMNS]
    assert said in " ".join(" ".join(lines).split())
    assert found == status


@pytest.mark.thorough
def test_rows_of_samples_and_grades_fit(printed, tmp_path):
    results = tmp_path / "results.json"
    results.write_text(json.dumps(RESULTS), "utf-8")
    status, lines = printed("vectors", "check", str(results))
    assert status == 3
    assert fits(lines), [line for line in lines if len(line) > COLUMNS]
    status, lines = printed("stats", "--quick", "--no-engines", "--subject", "reference:nasd")
    assert status == 0
    assert fits(lines), [line for line in lines if len(line) > COLUMNS]
    assert "rows as they must be" in " ".join(lines)


def test_the_kill_matrix_fits():
    cells = (MatrixCell("processors_see_their_prefix", "killed", 0.25, 1000, 1.5),)
    row = MutantRow("step-rewritten-without-the-draft", "", "A", "", cells[0].check, cells, "refuted")
    control = ControlRow("looks-wrong", "", "", ("law_is_target", "greedy_is_argmax"), (), 2)
    console = Console(width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(kill_table(KillMatrix((row,), (control,)), COLUMNS))
    lines = screen(console.file.getvalue())
    assert fits(lines)
    assert all(any(word in line for line in lines) for word in (row.name, row.killed_by, "greedy_is_argmax"))


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "chekcs"),
        ("list", "checks", "egagg"),
        ("explain", "resdual"),
        ("verify", "reference:egagg"),
        ("verify", "reference:nasd", "--check", "law_is_taget"),
        ("verify", "reference:nasd", "--json", "/nowhere/at/all/that/is/long/enough/to/be/broken/report.json"),
        ("stats", "--subject", "nasdd"),
        ("prove", "coupling"),
        ("replay", "x" * 120),
        ("mutants", "--class", "ZZ"),
        ("vectors", "check", "/nowhere/at/all"),
    ],
    ids=" ".join,
)
def test_a_refusal_is_broken_between_words(printed, arguments):
    status, lines = printed(*arguments)
    assert status == 2
    assert fits([line for line in lines if " " in line.strip()])
    whole = CliRunner().invoke(app, list(arguments))
    shown = screen(whole.stdout) + screen(whole.stderr)
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(shown).split())


def test_what_does_not_fit_is_noticed():
    assert not fits(["x" * 81])
    assert not fits(screen("⠋ loading ━━━━╸"))
    assert fits(screen("⠋ loading ━━━\r\x1b[2Kdone\nthe next\n"))
    assert screen("one\ntwo\x1b[1A\r\x1b[2Kthree") == ["three", "two"]


def test_parts_stay_together_where_they_can():
    line = "        after (0,): p = (0.5, 0.375, 0.125)   q = (0.222222, 0.222222, 0.555556)"
    assert wrapped(line, 79).splitlines() == [
        "        after (0,): p = (0.5, 0.375, 0.125)",
        "          q = (0.222222, 0.222222, 0.555556)",
    ]
    assert wrapped(line, 0) == wrapped(line, 80) == line
    assert wrapped(COPIED + "x" * 90, 80) == COPIED + "x" * 90
    assert wrapped("  Then  one two three four", 18) == "  Then  one two\n          three\n          four"
