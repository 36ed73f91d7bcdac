"""Execute the code on the pages of five-minute starts, and write the output below it; run as a script.

A block of Python that begins with ``# name.py`` is that file; another block is executed after those before it. Below a
comment ``said by test_x.test_y, 5 lines`` follow the first lines of what that test raises; below ``said by specverify
...`` follows what the command prints.
"""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import contextmanager
from importlib import import_module, invalidate_caches
from pathlib import Path
from tempfile import TemporaryDirectory

from typer.testing import CliRunner

from specverify.checks import EXACT_CHECKS
from specverify.cli import app
from specverify.testing import SpeculationRefuted

FOLDER = Path(__file__).parents[2] / "docs" / "start"
PAGES = tuple(sorted(page.stem for page in FOLDER.glob("*.md")))
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SAID = re.compile(r"(<!-- said by ([^>]*?) -->\n\n```\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL)
EXACT = " ".join(f"--check {check.name}" for check in EXACT_CHECKS)


def text_of(page):
    return (FOLDER / f"{page}.md").read_text("utf-8")


@contextmanager
def written(text):
    """Write the files of a page to an importable folder, and execute its other blocks."""
    scope, before = {}, set(sys.modules)
    with TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        try:
            for block in BLOCK.findall(text):
                name = re.match(r"# (\w+)\.py\n", block)
                if name:
                    (Path(folder) / f"{name[1]}.py").write_text(block, "utf-8")
                else:
                    exec(compile(block, "<page>", "exec"), scope)
            invalidate_caches()
            yield Path(folder)
        finally:
            sys.path.remove(folder)
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
                    del sys.modules[name]


def checks_in(folder):
    """Return the tests in the files written to ``folder``, by ``module.name``."""
    modules = [import_module(file.stem) for file in sorted(folder.glob("test_*.py"))]
    return {f"{m.__name__}.{name}": test for m in modules for name, test in vars(m).items() if name.startswith("test_")}


def raised_by(test):
    """Return the message that a test raises, without the name of the subject; None if it passes."""
    try:
        test()
    except SpeculationRefuted as refuted:
        return str(refuted).split(": ", maxsplit=1)[1]
    return None


def said(by, folder):
    """Return the lines that belong below a comment ``said by ...``, given the text ``by`` after these words."""
    if not by.startswith("specverify "):
        name, number = re.fullmatch(r"(\S+), (\d+) lines", by).groups()
        return "\n".join(raised_by(checks_in(folder)[name]).splitlines()[: int(number)])
    printed = CliRunner().invoke(app, shlex.split(by.replace("EXACT", EXACT))[1:]).output
    found = re.search(r"^1\. .*?^ +Again .*?$", printed, re.MULTILINE | re.DOTALL)
    return "\n".join(line.rstrip() for line in found[0].splitlines())


def executed(text):
    """Return the page with the present output of its code."""
    with written(text) as folder:
        return SAID.sub(lambda match: f"{match[1]}{said(match[2], folder)}\n{match[4]}", text)


if __name__ == "__main__":
    for page in PAGES:
        (FOLDER / f"{page}.md").write_text(executed(text_of(page)), "utf-8")
