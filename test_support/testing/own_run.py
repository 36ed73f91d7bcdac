"""A user's own run of pytest, inside this process: modules that it imports stay loaded."""

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
READ_BY_PYTEST = (
    "CI",
    "BUILD_NUMBER",
    "PYTEST_ADDOPTS",
    "PY_COLORS",
    "NO_COLOR",
    "FORCE_COLOR",
)  # they change its output


class Ran(NamedTuple):
    """The result of a run of pytest: exit status and output."""

    code: int
    out: str
    err: str

    @property
    def outcomes(self):
        """Return how many tests passed, failed and so on, by the words of the last line."""
        return {word: int(number) for number, word in re.findall(r"(\d+) ([a-z]+)", self.out.splitlines()[-1])}

    def shows(self, *patterns):
        """Return whether each pattern matches a line of the output."""
        lines = self.out.splitlines()
        return all(any(fnmatch(line, pattern) for line in lines) for pattern in patterns)


def run_in(folder: Path, *options: str) -> Ran:
    """Run pytest in ``folder``, then remove the modules of that folder from ``sys.modules``.

    The output is the same wherever these tests run: the variables that pytest itself reads are not set.
    """
    here, path, out, err = Path.cwd(), list(sys.path), io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            for variable in READ_BY_PYTEST:
                patch.delenv(variable, raising=False)
            code = pytest.main([*PLUGINS, f"--rootdir={folder}", *options])
    finally:
        os.chdir(here)
        sys.path[:] = path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]
    return Ran(int(code), out.getvalue(), err.getvalue())
