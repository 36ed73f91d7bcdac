"""``docs/thorough.md`` lists every test that the default run leaves out, whole or in part, and nothing else."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from engine_tests.conftest import collect_ignore

ROOT = Path(__file__).parents[2]
FOLDERS = ("property_tests", "engine_tests", "gpu_tests")


def keep_of(decorator):
    """Return the number in ``thorough(keep=number)``, 0 without one, None for another decorator."""
    text = ast.unparse(decorator)
    found = re.fullmatch(r"pytest\.mark\.thorough(?:\(keep=(\d+)\))?", text)
    return int(found[1] or 0) if found else None


def marked():
    found = {}
    for file in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py")):
        if file.parent.name in collect_ignore:
            continue
        text = file.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "mark.thorough" in text else ():
            for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
                if keep_of(decorator) is not None:
                    found[f"{file.relative_to(ROOT)}::{node.name}"] = keep_of(decorator)
    return found


def test_the_page_lists_what_is_marked():
    page = (ROOT / "docs" / "thorough.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\S+::\S+)` \| (none|one in \d+) \|", page, flags=re.MULTILINE)
    assert len(rows) == len(dict(rows))
    assert {name: f"one in {keep}" if keep else "none" for name, keep in marked().items()} == dict(rows)


TESTS = """
import pytest

@pytest.mark.thorough
def test_long():
    pass

@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("number", range(7))
def test_some(number):
    pass

def test_always():
    pass
"""


def collected(directory, *arguments):
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *arguments]
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins take most of such a run
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False, env=alone)
    return [line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line]


def test_the_default_run_leaves_out_what_is_marked_and_the_thorough_one_nothing(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "conftest.py").read_text("utf-8"), "utf-8")
    (tmp_path / "test_some.py").write_text(TESTS, "utf-8")
    every = ["test_long", *(f"test_some[{number}]" for number in range(7)), "test_always"]
    assert collected(tmp_path) == ["test_some[0]", "test_some[3]", "test_some[6]", "test_always"]
    assert collected(tmp_path, "--thorough") == every
    assert collected(tmp_path, "test_some.py::test_long") == ["test_long"]
