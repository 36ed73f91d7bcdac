"""Commands that print words: explanations, help and lists fit the terminal, or one line each in a pipe."""

from __future__ import annotations

import json
import re

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from property_tests.report.test_wrapping import fits
from property_tests.run.test_explain import run
from specverify.checks import CHECKS
from specverify.cli import app, options, word_commands
from test_support.run.screen import screen

COLUMNS = 80

COPIED = "  Again specverify replay "
"""Stays in one line, to be copied."""

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


def commands(command, *names):
    """Yield the names of every command, and of those that have others."""
    yield names
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, *names, name)


@pytest.mark.parametrize("names", list(commands(get_command(app))), ids=" ".join)
def test_every_help_fits(printed, names):
    status, lines = printed(*names, "--help")
    assert status == 0
    assert fits(lines)


@pytest.mark.parametrize("kind", [(), *((kind,) for kind in word_commands.KINDS)], ids=str)
def test_every_list_fits(printed, kind):
    status, lines = printed("list", *kind)
    assert status == 0
    assert fits(lines)


def test_every_explanation_fits(printed):
    for check in CHECKS:
        status, lines = printed("explain", check.name)
        assert status == 0
        assert fits(lines), check.name


@pytest.mark.parametrize("kind", word_commands.KINDS)
def test_in_a_pipe_each_has_one_line(kind):
    rows = json.loads(run("list", kind, "--json").output)[kind]
    lines = run("list", kind).output.splitlines()
    assert [line.split()[0] for line in lines] == [row["name"].split()[0] for row in rows]


@pytest.mark.parametrize("width", [80, 120])
def test_on_a_terminal_lines_are_as_wide_as_it(width, monkeypatch):
    monkeypatch.setattr(word_commands, "_width", lambda: width)
    for kind in ("algorithms", "checks", "mutants"):
        lines = run("list", kind).output.splitlines()
        assert max(map(len, lines)) <= width
    assert max(map(len, run("explain", "support_at_boundary_draws").output.splitlines())) <= 120
