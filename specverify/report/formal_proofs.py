"""Which algorithms a theorem of ``proofs/`` covers for every vocabulary and gamma, and why others are not covered.

``nox -s proofs`` compiles the theories with Coq. The texts are in ``formal_proofs.toml``; ``docs/proofs.md`` has the
statements and their proofs.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple


class Theorem(NamedTuple):
    """A theorem: its name in Coq, its file in ``proofs/``, and its statement in one line."""

    name: str
    file: str
    says: str


class ProofCoverage(NamedTuple):
    """The theorem about an algorithm, with a note. If there is none, the theorem is None and the note is the reason."""

    theorem: Theorem | None
    note: str


@cache
def theorems() -> dict[str, Theorem]:
    """Return the theorems by name, in the order of the files."""
    return {name: Theorem(name, entry["file"], entry["says"]) for name, entry in _data()["theorems"].items()}


def covered_rows() -> dict[str, Theorem]:
    """Return name of an algorithm -> its theorem, for all covered algorithms."""
    return {row: theorems()[name] for row, name in _data()["rows"].items()}


def uncovered_rows() -> dict[str, str]:
    """Return name of an algorithm -> the reason why it has no theorem."""
    return dict(_data()["uncovered"])


def coverage(row: str) -> ProofCoverage | None:
    """Return the theorem about the algorithm called ``row``, or the reason why it has none.

    Returns None if there is no such algorithm.
    """
    data = _data()
    if row in data["rows"]:
        return ProofCoverage(theorems()[data["rows"][row]], data["notes"].get(row, ""))
    return ProofCoverage(None, data["uncovered"][row]) if row in data["uncovered"] else None


def coverage_text(row: str) -> str:
    """Return one or two lines about the theorem of the algorithm called ``row``; "" if there is no such algorithm."""
    known = coverage(row)
    if known is None:
        return ""
    if known.theorem is None:
        return f"  for every vocabulary and gamma: not covered, {known.note}"
    theorem = known.theorem
    note = f" ({known.note})" if known.note else ""
    return (
        f"  for every vocabulary and gamma: theorem {theorem.name} of proofs/{theorem.file}.v{note}\n    {theorem.says}"
    )


def coverage_cell(row: str) -> str:
    """Return the text about the algorithm called ``row`` for a cell of a table.

    It is the name of the theorem with its note, "no" with the reason without a theorem, or "" without such an
    algorithm.
    """
    known = coverage(row)
    if known is None:
        return ""
    if known.theorem is None:
        return f"no: {known.note}"
    return f"`{known.theorem.name}`" + (f", {known.note}" if known.note else "")


@cache
def _data() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("specverify.report").joinpath("formal_proofs.toml").read_text("utf-8"))
