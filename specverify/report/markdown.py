"""Verdicts as a Markdown table: one line per subject, one column per check, and statements below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specverify.base.verdict import Status, Verdict
from specverify.report.prose import SYMBOLS

SAID = (Status.REFUTED, Status.UNKNOWN, Status.UNUSABLE, Status.REFUSED, Status.DECLARED_BIAS)
"""Statuses that are described below the table; verdicts that hold with an edge follow."""


def verdict_table(verdicts: Sequence[Verdict], settings: Mapping[str, str]) -> str:
    """Return a Markdown table of verdicts, followed by a list of the statements of verdicts other than HOLDS.

    A verdict HOLDS is listed too if it has a note on edges: a fault at random numbers very close to 0 or 1.
    ``settings`` maps a subject to a name that may begin its statements. The name is removed, so that subjects with
    equal statements share a line.
    """
    applied = [verdict for verdict in verdicts if verdict.status is not Status.NOT_APPLICABLE]
    checks = list(dict.fromkeys(verdict.check for verdict in applied))
    subjects = list(dict.fromkeys(verdict.subject for verdict in applied))
    cells = {(verdict.subject, verdict.check): _cell(verdict) for verdict in applied}
    lines = [
        "| subject | " + " | ".join(check.replace("_", " ") for check in checks) + " |",
        "|---|" + "---|" * len(checks),
        *(
            f"| {subject} | " + " | ".join(cells.get((subject, check), "") for check in checks) + " |"
            for subject in subjects
        ),
        "",
        "; ".join(f"{SYMBOLS[status]} {status}" for status in Status if any(v.status is status for v in applied)),
        "",
        *_statement_lines(applied, settings),
    ]
    return "\n".join(lines) + "\n"


def _cell(verdict: Verdict) -> str:
    tv = verdict.figures.get("tv")
    shown = f" {tv:.1g}" if tv and "law" in verdict.check else ""
    return SYMBOLS[verdict.status] + shown


def _statement_lines(verdicts: Sequence[Verdict], settings: Mapping[str, str]) -> list[str]:
    """Return the lines of the list below a verdict table: one for each different statement, with all its subjects.

    ``settings`` maps a subject to a name that may begin its statements; the name is removed. Checks with the same
    status, statement and subjects share a line.
    """
    result: dict[tuple[Status, str, str], list[str]] = {}
    for verdict in verdicts:
        if verdict.status in SAID or verdict.figures.get("edges"):
            setting = settings.get(verdict.subject, "")
            statement = verdict.statement.removeprefix(f"{setting}: ").replace("|", "\\|")
            result.setdefault((verdict.status, verdict.check, statement), []).append(verdict.subject)
    shared: dict[tuple[Status, str, tuple[str, ...]], list[str]] = {}
    for (status, check, statement), subjects in result.items():
        shared.setdefault((status, statement, tuple(subjects)), []).append(check.replace("_", " "))
    order = (*SAID, Status.HOLDS)
    return [
        f"* {SYMBOLS[status]} {', '.join(names)}: {statement} ({', '.join(subjects)})"
        for (status, statement, subjects), names in sorted(shared.items(), key=lambda item: order.index(item[0][0]))
    ]
