"""The examples outside this checkout: their tests in a copy of the folder, and the workflow."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_copy_of_the_folder_runs_without_the_options_of_this_project(tmp_path):
    shutil.copy(EXAMPLES / "conftest.py", tmp_path)
    (tmp_path / "test_short.py").write_text("def test_it():\n    pass\n", "utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
        "--rootdir",
        str(tmp_path),
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_workflow_checks_out_each_folder_that_it_installs():
    workflow = (EXAMPLES / "ci" / "github-workflow.yml").read_text("utf-8")
    installed = re.findall(r"pip install \./(\w+)", workflow)
    assert installed
    assert set(installed) <= set(re.findall(r"^ +path: (\w+)$", workflow.partition("upload-artifact")[0], re.MULTILINE))
