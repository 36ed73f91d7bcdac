"""Somebody's own run of pytest, in this process: modules that it loads stay, since some cannot be loaded twice."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import pytest

PLUGINS = (
    *("-p", "specverify.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:benchmark", "-p", "no:xdist"),
    *("-p", "no:unraisableexception"),  # at its end it collects the garbage of all the tests that run around it
    "--assert=plain",  # what is loaded already cannot be rewritten
)


class Ran(NamedTuple):
    """What came of a run."""

    code: int
    out: str
    err: str

    @property
    def outcomes(self):
        """How many tests passed, failed and so on, by the word of the last line."""
        return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", self.out.splitlines()[-1])}

    def shows(self, *patterns):
        """Whether a line of the output fits each pattern."""
        lines = self.out.splitlines()
        return all(any(fnmatch(line, pattern) for line in lines) for pattern in patterns)


def run_in(folder: Path, *options: str) -> Ran:
    """Run pytest in a folder, and forget the modules of that folder."""
    here, path, out, err = Path.cwd(), list(sys.path), io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = pytest.main([*PLUGINS, f"--rootdir={folder}", *options])
    finally:
        os.chdir(here)
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
    return Ran(int(code), out.getvalue(), err.getvalue())
