"""Small campaigns for tests: they are written to a folder and run, and their stored results are read."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import programs
from typer.testing import CliRunner

from specverify.cli import app

HERE = Path(programs.__file__).parent
PLAN = """
results = "results.sqlite"
alarm = 1e-6
tv = {tv}
block = {block}
blocks = {blocks}
{more}
"""
SUBJECT = """
[[subject]]
name = "python:programs:{name}"
law = "law.json"
max_tokens = 2
timeout = {timeout}
"""


def plan_in(folder, *names, tv=0.05, blocks=12, block=640, timeout=60, more=""):
    folder.mkdir(exist_ok=True)
    (folder / "law.json").write_text(json.dumps(programs.law()), "utf-8")
    text = PLAN.format(tv=tv, blocks=blocks, block=block, more=more)
    text += "".join(SUBJECT.format(name=name, timeout=timeout) for name in names)
    (folder / "plan.toml").write_text(text, "utf-8")
    return folder / "plan.toml"


def run(plan, *options):
    """Run the command; return its exit status and its output, without the progress line after twenty seconds."""
    result = CliRunner().invoke(app, ["campaign", str(plan), *map(str, options)])
    return result.exit_code, re.sub(r"^campaign: .*\n", "", result.output, flags=re.MULTILINE)


def blocks_in(folder):
    file = sqlite3.connect(folder / "results.sqlite")
    try:
        return file.execute("SELECT subject, setting, block, found FROM blocks ORDER BY subject, block").fetchall()
    finally:
        file.close()


def stored_so_far(folder):
    try:
        return blocks_in(folder)
    except sqlite3.OperationalError:
        return []


def found_in(folder):
    """Return the stored results, whatever the name of the subject."""
    return [(block, found) for _, _, block, found in blocks_in(folder)]
