"""Verdicts, read from the JSON that the commands ``specverify verify``, ``sample`` and ``campaign`` write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.report.runs.panels import panels_of
from specverify.report.runs.said import RunSaid, SubjectSaid


def said_of_verdicts(data: Mapping[str, Any]) -> RunSaid:
    """Return the run that ``data``, the JSON data of ``specverify verify``, ``sample`` or ``campaign``, records.

    Raises ``LookupError``, ``TypeError`` or ``ValueError`` for other JSON.
    """
    if not isinstance(data["verdicts"], list):
        raise TypeError(f"verdicts is of type {type(data['verdicts']).__name__}, expected a list")
    verdicts = [_verdict(item) for item in data["verdicts"]]
    facts = {"false-alarm budget of the run": f"{data['alarm']:g}", "seed": str(data["seed"])}
    return RunSaid("verdicts", said_by_subject(verdicts), facts, **made(data))


def said_by_subject(verdicts: Sequence[Verdict]) -> tuple[SubjectSaid, ...]:
    """Return one entry for each subject: its verdicts, and the panels that show their numbers.

    A panel is a table with a small picture in each line.
    """
    names = dict.fromkeys(verdict.subject for verdict in verdicts)
    result = {name: tuple(verdict for verdict in verdicts if verdict.subject == name) for name in names}
    return tuple(
        SubjectSaid(name, mine, tuple(panel for verdict in mine for panel in panels_of(verdict)))
        for name, mine in result.items()
    )


def made(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the command of a run and the versions of Python and its packages, as fields of ``RunSaid``.

    ``data`` is the JSON data of the run.
    """
    told = data.get("made") or {}
    versions = {str(name): str(version) for name, version in (told.get("versions") or {}).items()}
    if "specverify" in data:
        versions.setdefault("specverify", str(data["specverify"]))
    return {"command": str(told.get("command") or ""), "versions": versions}


def _verdict(item: Mapping[str, Any]) -> Verdict:
    example = item["counterexample"]
    for name in ("subject", "check", "statement"):
        if not isinstance(item[name], str):
            raise TypeError(f"{name} is {item[name]!r}, expected a text")
    return Verdict(
        item["subject"],
        item["check"],
        Status(item["status"]),
        item["statement"],
        None if item["claim"] is None else str(item["claim"]),
        None if item["evidence"] is None else Evidence(item["evidence"]),
        None if example is None else _counterexample(example),
        item["figures"],
        float(item["seconds"]),
    )


def _counterexample(item: Mapping[str, Any]) -> Counterexample:
    lines = tuple(map(str, item["let"])), tuple(map(str, item["because"]))
    fault, rows = str(item.get("fault", "")), tuple(map(str, item.get("rows", ())))
    return Counterexample(lines[0], str(item["then"]), lines[1], str(item["again"]), fault, rows)
