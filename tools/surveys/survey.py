"""Examine one engine, repeat refuted rows with three fresh seeds, and write the table of the engine's page.

    python tools/surveys/survey.py PREFIX [--work FOLDER] [--write PAGE] [--seconds SECONDS] [--together] [--only WORD]
    python tools/surveys/survey.py PREFIX --quick PAGE [--work FOLDER] [--together]

``specverify verify`` samples row by row; all rows share one false-alarm probability. A row whose report is already in
FOLDER is not sampled again, so an interrupted survey continues where it ended. The table is written between the marks
of PAGE; the rest of PAGE is written by hand. A row that takes more than SECONDS is unknown: allow more on a busy
machine. With ``--together`` the rows whose names agree up to the first ``/`` are examined in one process, so that the
engine starts once for all of them. ``--only`` examines the rows whose name contains WORD, and prints their table.
``--quick`` examines some rows of PAGE, and prints their table and the verdicts that differ from PAGE (``quick_rows``).
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from specverify.base.verdict import Status
from specverify.checks import check_named
from specverify.report.data import as_data
from specverify.run.catalogue import expanded
from specverify.run.verify import verdict_of
from specverify.subjects.decoding import NOTHING_DRAFTED
from specverify.subjects.subject import UnusableSubject

BEGIN, END = "<!-- table -->\n", "<!-- end -->\n"
COLUMNS = ("what", "verdict", "samples", "detectable TV", "TV of the sample", "seconds", "remarks")
HEAD = f"| {' | '.join(COLUMNS)} |\n|---|---|---:|---:|---:|---:|---|\n"
CHECK_NAMES = ("samples_fit_law", "samples_agree")
CHECKS = tuple(word for name in CHECK_NAMES for word in ("--check", name))
NOT_COVERED = "not covered"
REPEATS = (1, 2, 3)
SUBJECT_SECONDS = 900
ALARM = 1e-6
"""Shared by all rows, and by all repeats of a seed."""
QUICK_SHARES = (0.0, 0.25, 0.5)
"""The rows of a way that hold and are in the quick part, by their rank in samples: the cheapest to the median."""


class PageRow(NamedTuple):
    """A row of the table on an engine's page."""

    verdict: str
    samples: int


def page_rows(page: Path) -> dict[str, PageRow]:
    """Return the rows of the table on a page, by name."""
    table_text = page.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    found = re.findall(r"^\| ([^|]+?) \| ([a-z ]+) \| (\d*) \|", table_text, re.MULTILINE)
    return {name: PageRow(verdict, int(samples or 0)) for name, verdict, samples in found if verdict != "verdict"}


def quick_rows(rows: Mapping[str, PageRow]) -> list[str]:
    """Return the names of rows for ``--quick``: all that are refuted or raise, and some that hold of each method."""
    chosen = {name for name, row in rows.items() if row.verdict in {"refuted", "unusable", "unknown"}}
    ways: dict[str, list[str]] = {}
    for name, row in rows.items():
        if row.verdict == "holds":
            ways.setdefault(name.partition("/")[0], []).append(name)
    for names in ways.values():
        ranked = sorted(names, key=lambda name: (rows[name].samples, name))
        chosen |= {ranked[int(share * (len(ranked) - 1))] for share in QUICK_SHARES}
    return [name for name in rows if name in chosen]


def differences(rows: Mapping[str, PageRow], verdicts: Sequence[Mapping[str, Any]]) -> str:
    """Return in words which verdicts of a quick survey differ from the page, and how many are equal."""
    now = {str(verdict["subject"]).partition("/")[2]: _status(verdict) for verdict in verdicts}
    changed = {name: status for name, status in now.items() if name not in rows or rows[name].verdict != status}
    lines = [
        f"{name}: {rows[name].verdict if name in rows else 'not on the page'} -> {changed[name]}" for name in changed
    ]
    return "\n".join([f"{len(now) - len(changed)} of {len(now)} verdicts are those of the page", *lines])


def report(
    names: Sequence[str], seed: int, folder: Path, seconds: float, *, together: bool = False
) -> list[dict[str, Any]]:
    """Return the verdicts of the checks that apply to each named row, sampled with ``seed``.

    Reports in ``folder`` are read instead of sampling again. ``together`` examines rows in shared processes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if together:
        for _, group in groupby(names, key=_way_of):
            _examine_together(list(group), seed, folder, seconds, ALARM / len(names))
    verdicts = [verdict for name in names for verdict in _row_report(name, seed, folder, seconds, ALARM / len(names))]
    return [verdict for verdict in verdicts if verdict["status"] != "not applicable"]


def _row_report(name: str, seed: int, folder: Path, seconds: float, alarm: float) -> list[dict[str, Any]]:
    """Return all verdicts on one row.

    Its report is written under another name first, so that it is never incomplete.
    """
    file = report_file(folder, name)
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


def report_file(folder: Path, name: str) -> Path:
    """Return the path of the report of the row ``name``."""
    return folder / f"{quote(name, safe=' ,:')}.json"


def _way_of(name: str) -> str:
    return name.partition("/")[2].partition("/")[0]


def _examine_together(names: Sequence[str], seed: int, folder: Path, seconds: float, alarm: float) -> None:
    """Examine rows in one process.

    If a row ends it, that row is unusable, and a new process examines the rows after it.
    """
    limits = ["--seed", str(seed), "--alarm", repr(alarm), "--seconds", str(seconds), "--folder", str(folder)]
    while open_ones := [name for name in names if not report_file(folder, name).exists()]:
        command = [sys.executable, str(Path(__file__).with_name("together.py")), *limits, *open_ones]
        done = subprocess.run(command, check=False)
        left = [name for name in open_ones if not report_file(folder, name).exists()]
        if done.returncode and left:
            said = f"its process ended with status {done.returncode}"
            verdict = verdict_of(left[0], check_named(CHECK_NAMES[0]), Status.UNUSABLE, said)
            report_file(folder, left[0]).write_text(json.dumps(as_data([verdict], alarm, seed)), "utf-8")


def table(verdicts: list[dict[str, Any]], repeats: list[list[dict[str, Any]]]) -> str:
    """Return the table: refuted rows first, then those that are unknown or unusable, then the others."""
    order = ["refuted", "unusable", "unknown", "holds", NOT_COVERED]
    again = [{verdict["subject"]: verdict["status"] for verdict in repeat} for repeat in repeats]
    rows = [_row(verdict, again) for verdict in sorted(verdicts, key=lambda each: order.index(_status(each)))]
    statuses = [_status(each) for each in verdicts]
    counts = ", ".join(f"{statuses.count(name)} {name}" for name in order if name in statuses or name != NOT_COVERED)
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
    seconds = f"{verdict['seconds']:.0f}"
    return f"| {name} | {_status(verdict)} | {' | '.join(map(str, (*numbers, seconds)))} | {'; '.join(beside)} |\n"


def _status(verdict: Mapping[str, Any]) -> str:
    """Return the status of a row; a row that holds without any draft says nothing about speculation."""
    idle = any(line.endswith(NOTHING_DRAFTED) for line in verdict["figures"].get("activity", ()))
    return NOT_COVERED if idle and verdict["status"] == "holds" else str(verdict["status"])


def _repeated(statuses: list[str]) -> str:
    """Return in words how many repeats refuted a row again; undecided repeats are not counted as either."""
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
    parser.add_argument("--together", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--quick", type=Path, default=None)
    given = parser.parse_args()
    work = given.work or Path(tempfile.mkdtemp())
    on_page = page_rows(given.quick) if given.quick else {}
    quick = {f"{given.prefix}:all/{name}" for name in quick_rows(on_page)}
    rows = [name for name in _rows(given.prefix) if given.only in name and (not given.quick or name in quick)]
    verdicts = report(rows, 0, work / given.prefix, given.seconds, together=given.together)
    wrong = [verdict["subject"] for verdict in verdicts if verdict["status"] == "refuted"]
    if given.quick:
        wrong = [name for name in wrong if on_page[name.partition("/")[2]].verdict != "refuted"]
    folders = ((seed, work / f"{given.prefix}-{seed}") for seed in REPEATS)
    sampled = partial(report, wrong, seconds=given.seconds, together=given.together)
    repeats = [sampled(seed=seed, folder=folder) for seed, folder in folders] if wrong else []
    found = table(verdicts, repeats)
    if given.quick:
        print(found + "\n" + differences(on_page, verdicts))
        return
    if given.write is None:
        print(found)
        return
    before, rest = given.write.read_text("utf-8").split(BEGIN)
    given.write.write_text(before + BEGIN + found + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
