"""Verdicts as JSON, in a published schema."""

from __future__ import annotations

import json
import math
import platform
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from typing import Any

from specverify import __version__
from specverify.base.verdict import Verdict

BESIDE = frozenset({"triton", "distributed"})
"""Packages that may affect a run, in addition to the requirements in this project's metadata."""


def made_by(typed: Sequence[str] | None) -> dict[str, Any]:
    """Return the command of a run, and the versions of Python, specverify and the loaded packages that it requires.

    ``typed`` are the words of the command line after the program's name; with None, the command is None.
    """
    loaded = dict(_versions(sorted((_asked_for() | BESIDE) & sys.modules.keys())))
    versions = {"specverify": __version__, "python": platform.python_version(), **loaded}
    return {"command": None if typed is None else shlex.join(["specverify", *typed]), "versions": versions}


def _versions(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def _asked_for() -> frozenset[str]:
    """Return the names of the packages that specverify requires, including its extras.

    The result is empty if specverify is not installed.
    """
    try:
        lines = requires("specverify-suite") or ()
    except PackageNotFoundError:
        return frozenset()
    return frozenset(result[0] for line in lines if (result := re.match(r"[\w-]+", line)))


def as_data(
    verdicts: Sequence[Verdict], alarm: float, seed: int, made: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a report on ``verdicts`` as JSON data in the format of ``schema``.

    ``alarm`` is the false-alarm budget of the run, and ``seed`` its seed. ``made`` is the result of ``made_by``, or
    None.
    """
    return {
        **({} if made is None else {"made": made}),
        "specverify": __version__,
        "alarm": alarm,
        "seed": seed,
        "verdicts": [plain_verdict(verdict) for verdict in verdicts],
    }


def schema() -> dict[str, Any]:
    """Return the JSON schema of a report."""
    loaded: dict[str, Any] = json.loads(files("specverify.report").joinpath("schema.json").read_text("utf-8"))
    return loaded


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """Return ``verdict`` as JSON data."""
    data = verdict._asdict()
    example = verdict.counterexample
    data["counterexample"] = None if example is None else example._asdict()
    data["figures"] = finite(dict(verdict.figures))
    return data


def finite(value: Any) -> Any:
    """Return ``value`` as JSON data: tuples become lists, and keys strings.

    A number that is infinite or NaN becomes a word, because JSON has none.
    """
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
