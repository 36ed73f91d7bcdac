"""The results of a statistics run, read from the JSON that the command ``specverify stats`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.report.runs.of_verdicts import made
from specverify.report.runs.panels import distances_panel
from specverify.report.runs.said import RunSaid, SubjectSaid


def said_of_statistics(data: Mapping[str, Any]) -> RunSaid:
    """Return the run that ``data``, the JSON data of ``specverify stats``, records.

    Raises ``LookupError`` for other JSON.
    """
    rows = data["rows"]
    names = dict.fromkeys(str(row["subject"]) for row in rows)
    subjects = []
    for name in names:
        mine = [row for row in rows if row["subject"] == name]
        subjects.append(SubjectSaid(name, tuple(_verdict(name, row) for row in mine), (distances_panel(mine),)))
    facts = {
        "false-alarm budget of the run": f"{data['alarm']:g}",
        "planned tests that share it": str(data["tests"]),
        "seed": str(data["seed"]),
    }
    unfinished = () if data["complete"] else ("it was interrupted: nothing is known of what is not listed",)
    return RunSaid("statistics", tuple(subjects), facts, unfinished, **made(data))


def _verdict(name: str, row: Mapping[str, Any]) -> Verdict:
    """Return the verdict on the subject ``name`` from ``row``, the JSON data of one result of the statistics.

    The verdict is HOLDS if the result is as expected, which includes a negative control that is rejected. It is UNKNOWN
    if the result is unknown, and REFUTED otherwise.
    """
    setting = f"{row['setting'].strip()}, {row['method']}, against the {row['against']} law"
    result = f"p = {float(row['p_value']):.2g}, total variation {row['tv_observed']:.4f}"
    expected = bool(row["as_expected"])
    status = Status.HOLDS if expected else Status.UNKNOWN if row["verdict"] == "unknown" else Status.REFUTED
    control = " as it must be" if expected and row["verdict"] == "refuted" else ""
    again = f", then {row['confirmed_on']} fresh ones" if row["confirmed_on"] else ""
    example = Counterexample(
        (setting, f"{row['samples']} samples{again}"), result, (row["example"],) * bool(row["example"])
    )
    return Verdict(
        name,
        "samples_fit_law",
        status,
        f"{setting}: {row['verdict']}{control}, {result}",
        None,
        Evidence.STATISTICAL,
        example if status is Status.REFUTED else None,
        {"samples": row["samples"] + row["confirmed_on"], "tv_detectable": row["tv_detectable"]},
    )
