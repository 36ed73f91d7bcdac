"""``docs/pytest.md`` shows what the sample project prints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from test_support.testing.own_run import run_in

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pytest.md"
SHOWN = re.compile(r"(<!-- the output of examples/project -->\n```\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


def masked(text: str) -> str:
    """Return an output with its durations masked, and the rules beside them, which fill the line."""
    return re.sub(r"=* (.*) in \d+\.\d+s(?: \(.*?\))? =*", r"== \1 in 0.00s ==", text)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("variables", [{}, {"CI": "true"}])
def test_the_page_shows_what_the_project_prints(variables, tmp_path, monkeypatch):
    for name, value in {"COLUMNS": "100", **variables}.items():
        monkeypatch.setenv(name, value)
    project = shutil.copytree(ROOT / "examples" / "project", tmp_path / "project")
    ran = run_in(project, "-v", "--no-header")
    printed = masked("\n".join(line.rstrip() for line in ran.out.splitlines())) + "\n"
    assert masked(SHOWN.search(PAGE.read_text("utf-8"))[2]) == printed
