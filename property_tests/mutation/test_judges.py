"""Every file that mutation testing changes has a judge: a file that nobody judges passes as if it were tested."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]
JUDGES = [ROOT / name for name in SETTINGS["pytest_add_cli_args_test_selection"]]


def mutated():
    return sorted(path for pattern in SETTINGS["only_mutate"] for path in ROOT.glob(pattern) if path.stem != "__init__")


def judged():
    """Return the words of the judges, and of the algorithms that they name."""
    words = set(re.findall(r"\w+", " ".join(path.read_text("utf-8") for path in JUDGES)))
    algorithms = [path for path in ROOT.glob("reference/algorithms/*.py") if path.stem in words]
    return words | set(re.findall(r"\w+", " ".join(path.read_text("utf-8") for path in algorithms)))


def test_every_file_that_is_changed_has_a_judge():
    words = judged()
    assert len(mutated()) > 20
    assert [path.stem for path in mutated() if path.stem not in words] == []


def test_every_judge_is_there():
    assert [str(path) for path in JUDGES if not path.is_file()] == []


def test_judges_load_the_modules_under_the_names_of_their_files():
    """The tool finds the judges of a function by the name of its module, which its first import decides."""
    plugin = ["-p", "specverify.pytest_plugin"]  # pytest loads it before any test where specverify is installed
    run = [*SETTINGS["pytest_add_cli_args"], *plugin, "--collect-only", "-q", __file__]
    after = "from specverify.reference import coupling; print(coupling.__name__)"
    code = f"import pytest; pytest.main({run}); {after}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "reference.coupling"


def test_the_reasons_of_survivors_are_about_lines_of_today():
    """A line that was changed since has no reason any more, and its survivors would be reported."""
    entries = tomllib.loads((ROOT / "tools" / "mutation" / "equivalent.toml").read_text("utf-8"))["mutant"]
    assert [entry["old"] for entry in entries if entry["old"] not in code_of(entry["module"], entry["function"])] == []


def code_of(module, name):
    """Return the function ``name`` of a file in one line, as the list of survivors writes code."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    return " ".join(line.strip() for node in named for line in ast.unparse(node).splitlines())
