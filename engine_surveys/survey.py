"""Examine one engine, repeat what is refuted with three fresh seeds, and write the table of its page.

    python engine_surveys/survey.py PREFIX [--work FOLDER] [--write PAGE] [--seconds SECONDS]

``specverify verify`` samples row by row; all rows share one alarm budget. A row whose report is in FOLDER already is
not sampled again, so a survey that was ended goes on where it was. The table is put between the marks of PAGE, whose
other words are written by hand. A row that takes more than SECONDS is unknown: give more where other work runs beside.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from specverify.run.catalogue import expanded
from specverify.subjects.subject import UnusableSubject

BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
HEAD = "| what | verdict | samples | detectable TV | TV seen | beside |\n|---|---|---:|---:|---:|---|\n"
CHECKS = ("--check", "samples_fit_law", "--check", "samples_agree")
REPEATS = (1, 2, 3)
SUBJECT_SECONDS = 900
ALARM = 1e-6
"""Shared by all rows, and by all repeats of a seed."""


def report(names: Sequence[str], seed: int, folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Return the verdicts on subjects that say something, sampled with ``seed`` unless their reports are there."""
    folder.mkdir(parents=True, exist_ok=True)
    verdicts = [verdict for name in names for verdict in _row_report(name, seed, folder, seconds, ALARM / len(names))]
    return [verdict for verdict in verdicts if verdict["status"] != "not applicable"]


def _row_report(name: str, seed: int, folder: Path, seconds: float, alarm: float) -> list[dict[str, Any]]:
    """Return all verdicts on one subject. Its report is written aside first: it is there whole or not at all."""
    file = folder / f"{quote(name, safe=' ,:')}.json"
    if not file.exists():
        begun = file.with_suffix(".begun")
        begun.unlink(missing_ok=True)
        command = [sys.executable, "-m", "specverify", "verify", name, *CHECKS, "--seed", str(seed), "--jobs", "1"]
        limits = ["--alarm", repr(alarm), "--timeout", str(seconds)]
        subprocess.run([*command, *limits, "--json", str(begun)], check=False)
        if not begun.exists():
            sys.exit(f"{name} cannot be examined: what is above says why")
        begun.rename(file)
    found: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["verdicts"]
    return found


def table(verdicts: list[dict[str, Any]], repeats: list[list[dict[str, Any]]]) -> str:
    """Return the rows, refuted ones first, then what is unknown or unusable."""
    order = ["refuted", "unusable", "unknown", "holds"]
    again = [{verdict["subject"]: verdict["status"] for verdict in repeat} for repeat in repeats]
    rows = [_row(verdict, again) for verdict in sorted(verdicts, key=lambda each: order.index(each["status"]))]
    counts = ", ".join(f"{sum(each['status'] == name for each in verdicts)} {name}" for name in order)
    seconds = sum(verdict["seconds"] for verdict in verdicts)
    return f"{counts}; {seconds:.0f} seconds.\n\n{HEAD}{''.join(rows)}"


def _row(verdict: dict[str, Any], again: list[dict[str, str]]) -> str:
    figures, name = verdict["figures"], verdict["subject"].partition("/")[2]
    beside = [line.removeprefix(f"{name}: ") for line in figures.get("activity", ())]
    if verdict["status"] == "refuted" and again:
        beside.append(_repeated([each.get(verdict["subject"], "unknown") for each in again]))
        beside += (verdict["counterexample"] or {}).get("because", ())
    if verdict["status"] in {"unusable", "unknown"}:
        beside.append(verdict["statement"].replace("|", "/").partition("\n")[0][:200])
    numbers = (figures.get("samples", ""), *(_number(figures.get(key)) for key in ("tv_detectable", "tv_observed")))
    return f"| {name} | {verdict['status']} | {' | '.join(map(str, numbers))} | {'; '.join(beside)} |\n"


def _repeated(statuses: list[str]) -> str:
    """Say in how many repeats a row was refuted again; in one that was not decided it neither was nor was not."""
    refuted, open_ones = statuses.count("refuted"), statuses.count("unknown")
    told = f"refuted in {refuted} of {len(statuses)} repeats"
    return f"{told}, not decided in {open_ones}" if open_ones else told


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else ""


def _rows(prefix: str) -> Sequence[str]:
    try:
        return expanded(f"{prefix}:all")
    except UnusableSubject as error:
        sys.exit(str(error))


def main() -> None:
    """Run the survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix")
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--write", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=SUBJECT_SECONDS)
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp())
    verdicts = report(_rows(given.prefix), 0, work / given.prefix, given.seconds)
    wrong = [verdict["subject"] for verdict in verdicts if verdict["status"] == "refuted"]
    folders = ((seed, work / f"{given.prefix}-{seed}") for seed in REPEATS)
    repeats = [report(wrong, seed, folder, given.seconds) for seed, folder in folders] if wrong else []
    found = table(verdicts, repeats)
    if given.write is None:
        print(found)
        return
    before, rest = given.write.read_text("utf-8").split(BEGIN)
    given.write.write_text(before + BEGIN + found + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
