"""Examine one engine, repeat what is refuted with three fresh seeds, and write the table of its page.

    python engine_surveys/survey.py PREFIX [--work FOLDER] [--write PAGE] [--seconds SECONDS]

``specverify verify PREFIX:all`` does the sampling, under one alarm budget; a report that is in FOLDER already is not
made again. The table is put between the marks of PAGE, whose other words are written by hand. A row that takes more
than SECONDS is unknown: give more where other work runs beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
HEAD = "| what | verdict | samples | detectable TV | TV seen | beside |\n|---|---|---:|---:|---:|---|\n"
CHECKS = ("--check", "samples_fit_law", "--check", "samples_agree")
REPEATS = (1, 2, 3)
SUBJECT_SECONDS = 900


def report(names: list[str], seed: int, file: Path, seconds: float) -> list[dict[str, Any]]:
    """Return the verdicts on subjects that say something, sampled with ``seed`` unless the file is there."""
    if not file.exists():
        command = [sys.executable, "-m", "specverify", "verify", *names, *CHECKS, "--seed", str(seed), "--jobs", "1"]
        subprocess.run([*command, "--timeout", str(seconds), "--json", str(file)], check=False)
    if not file.exists():
        sys.exit(f"{names[0]} cannot be examined: what is above says why")
    verdicts = json.loads(file.read_text("utf-8"))["verdicts"]
    return [verdict for verdict in verdicts if verdict["status"] != "not applicable"]


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


def main() -> None:
    """Run the survey."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix")
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--write", type=Path, default=None)
    parser.add_argument("--seconds", type=float, default=SUBJECT_SECONDS)
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp())
    verdicts = report([f"{given.prefix}:all"], 0, work / f"{given.prefix}.json", given.seconds)
    wrong = [verdict["subject"] for verdict in verdicts if verdict["status"] == "refuted"]
    files = ((seed, work / f"{given.prefix}-{seed}.json") for seed in REPEATS)
    repeats = [report(wrong, seed, file, given.seconds) for seed, file in files] if wrong else []
    found = table(verdicts, repeats)
    if given.write is None:
        print(found)
        return
    before, rest = given.write.read_text("utf-8").split(BEGIN)
    given.write.write_text(before + BEGIN + found + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
