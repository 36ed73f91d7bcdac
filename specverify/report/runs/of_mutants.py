"""The kill matrix, read from the JSON that the command ``specverify mutants`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.base.verdict import Status, Verdict
from specverify.report.runs.of_verdicts import made
from specverify.report.runs.said import Matrix, MatrixRow, RunSaid, SubjectSaid

KILLS = "kills_the_bug_it_names"
ACCUSES_NOTHING_RIGHT = "accuses_nothing_right"


def said_of_mutants(data: Mapping[str, Any]) -> RunSaid:
    """Return the run that ``data``, the JSON data of ``specverify mutants``, records.

    Raises ``LookupError`` for other JSON.
    """
    rows = tuple(map(_row, data["mutants"]))
    checks = tuple(dict.fromkeys(check for row in rows for check in row.said))
    subjects = [_of_mutant(row, item) for row, item in zip(rows, data["mutants"], strict=True)]
    subjects += map(_of_control, data["controls"])
    facts = {"seed": str(data["seed"]), "total variation that sampling must see": f"{data['detect']:g}"}
    return RunSaid("kill matrix", tuple(subjects), facts, matrix=Matrix(checks, rows), **made(data))


def _row(item: Mapping[str, Any]) -> MatrixRow:
    words = {name: str(item[name]) for name in ("name", "category", "summary", "citation")}
    said = {str(cell["check"]): str(cell["status"]) for cell in item["cells"]}
    return MatrixRow(**words, named=str(item["killed_by"]), said=said, as_expected=bool(item["as_expected"]))


def _of_mutant(row: MatrixRow, item: Mapping[str, Any]) -> SubjectSaid:
    result = row.said.get(row.named, "not run")
    said = f"{row.named}: {result} with the bug, {item['control']} without it"
    status = Status.HOLDS if row.as_expected else Status.REFUTED
    return SubjectSaid(row.name, (Verdict(row.name, KILLS, status, said),))


def _of_control(item: Mapping[str, Any]) -> SubjectSaid:
    accused = ", ".join(map(str, item["accused_by"]))
    status = Status.HOLDS if item["as_expected"] else Status.REFUTED
    said = f"accused by {accused or 'no check'}, {len(item['held'])} hold"
    name = str(item["name"])
    return SubjectSaid(name, (Verdict(name, ACCUSES_NOTHING_RIGHT, status, said),))
