"""Run the reproducer of every cause in docs/findings/causes.toml on its own, and write the page of the results.

    python tools/surveys/reproducers.py --work FOLDER [--python REPRODUCER=PYTHON ...] [--only WORD] [--write PAGE]

A script is made by ``specverify reproduce`` or is in docs/findings/reproducers. It is run in an empty folder by the
PYTHON whose REPRODUCER its name begins with (``hf``, ``mlx``), which should have the engine installed and not
specverify; scripts of Node.js are run by ``--python node_llamacpp=node``. A script that samples is run with three
seeds. The results are kept in FOLDER, and the page is written from them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

FINDINGS = Path(__file__).parents[2] / "docs" / "findings"
SEEDS = (0, 1_000_000, 2_000_000)
SEEDED = "a seed"
"""Stands in the first lines of a script that takes one."""
HEAD = """# Every refuted cell, and the script that shows it

This page lists a script for each fault of the tables of the [findings](README.md). The script shows the fault with the
engine alone. A row is one cause; it may stand for many refuted cells of the tables (`docs/findings/causes.toml` lists
them, and a test fails if a cell has no cause). Each script was run from an empty folder, by a Python in which the
engine is installed and this project is not. `python tools/surveys/reproducers.py` runs the scripts again. Columns:

* *cells*: the number of refuted cells with this cause.
* *reproducer*: a script in `docs/findings/reproducers/`, or a command that writes one. A command with `nox` instead
  examines the unchanged functions of the project, with a control.
* *status 1*: the number of runs in which the script ended with status 1, which means that the fault is there. A script
  that samples was run with three seeds. *Not run*: the command was not run for this page.
* *made*: CPU seconds in which `specverify reproduce` found and wrote the script (without its own start).
* *run*: CPU seconds of the script.
* *it prints*: the last line of the output. *Expected* is the result of the call without speculation.

The last two columns are controls. They show that the fault is in the engine, and not in the code that calls it.

* *without speculation*: how many rows with the same options, but without drafts, hold on the page of the engine.
  *Expected law*: for transformers the expected law is that of this call, so it has no row. *Also wrong*: the fault
  occurs without speculation too. *No such row*: the page has no such row.
* *fixed*: how many of the cells hold after the smallest known fix of the engine, with the same adapter and checks
  (`tools/surveys/mends`; if cells have several causes, all are fixed). For a compiled engine a correct engine of this
  project takes its place. For a function of a project the control is a row of its page: the same code with one change,
  or another function in the same adapter. `nox -s pages -- controls` examines the cells again, and the first row of
  each cause with the unchanged engine.

"""
TABLE = (
    "| cause | cells | reproducer | status 1 | made | run | it prints | without speculation | fixed |\n"
    "|---|---:|---|---:|---:|---:|---|---|---|\n"
)


class Cause(NamedTuple):
    """The cause of refuted cells, and the script that reproduces it."""

    page: str
    """How the name of the page begins."""
    cause: str
    reproducer: str
    cells: tuple[str, ...]
    control: str = ""
    """A row of the page that holds where those of the cause are refuted."""
    uncontrolled: str = ""
    """Why there is neither that nor an engine that was mended."""


def causes() -> list[Cause]:
    """Return all causes of docs/findings/causes.toml."""
    found = tomllib.loads((FINDINGS / "causes.toml").read_text("utf-8"))
    return [
        Cause(page, **{**entry, "cells": tuple(entry["cells"])}) for page, entries in found.items() for entry in entries
    ]


def pages() -> dict[str, str]:
    """Return the text of each page with tables of refuted cells, under the name that ``Cause.page`` uses."""
    names = {"transformers-table": "transformers-*-table.md"}
    listed = dict.fromkeys(cause.page for cause in causes())
    return {page: next(FINDINGS.glob(names.get(page, f"{page}*.md"))).read_text("utf-8") for page in listed}


def refuted(text: str) -> Iterator[str]:
    """Yield the refuted and the unusable cells of a page's tables."""
    head: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        row = [item.strip().strip("*") for item in line.strip().strip("|").split("|")]
        if not head:
            head = row
        elif not set(line) <= set("|-:"):
            yield from _refuted_in(head, row)


def _refuted_in(head: list[str], row: list[str]) -> Iterator[str]:
    told = dict(zip(head, row, strict=False))
    name = row[0]
    if head[0] == "subject":
        yield from (
            f"{check} at {name}" for check, cell in told.items() if check != "subject" and cell[:1] in {"✘", "!"}
        )
    elif told.get("verdict") in {"refuted", "unusable"}:
        yield name
    elif told.get("refuted"):
        whole = head[0] == "function"
        yield from (f"{what} at {name}" for what in ([told["refuted"]] if whole else told["refuted"].split(", ")))
    elif head == ["what", "where", "when"]:
        yield f"{name} at {told['where']}"


def plain_of(cell: str) -> list[str]:
    """Return the possible names of the row without speculation that corresponds to a cell."""
    way, _, name = cell.partition("/")
    return [f"plain{way[len(way.partition(',')[0]) :]}/{name}", f"plain/{name}"]


def without_speculation(cells: Sequence[str], text: str) -> str:
    """Return, in words, how many of the refuted cells hold without speculation according to the page."""
    if all(" at " in cell for cell in cells):
        return "also wrong" if " at alone/" in cells[0] else "expected law" if "hf:" in text else ""
    if any(cell.startswith("plain") for cell in cells):
        return "also wrong"
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| plain")]
    held = {name.strip() for name, verdict, *_ in rows if verdict.strip() == "holds"}
    listed = {name.strip() for name, *_ in rows}
    compared = [cell for cell in cells if not listed.isdisjoint(plain_of(cell))]
    holding = sum(not held.isdisjoint(plain_of(cell)) for cell in compared)
    return f"{holding} of {len(cells)} hold" if compared else "no such row"


def mended_of(cause: Cause, cells: Sequence[str], work: Path) -> str:
    """Return, in words, the result of a cause's control: cells of a corrected engine, or a row of the page."""
    file = work / f"mended_{named(cause)}.json"
    if cause.control:
        return f"{cause.control} holds"
    if not file.exists():
        return f"none: {cause.uncontrolled or 'not run'}"
    found = json.loads(file.read_text("utf-8"))["mended"]
    statuses = [found.get(cell, "not examined") for cell in cells]
    others = sorted(set(statuses) - {"holds"})
    return "; ".join(
        f"{statuses.count(status)} of {len(statuses)} {status.replace('holds', 'hold')}"
        for status in ("holds", *others)
    )


def cause_of(cell: str, listed: list[Cause]) -> Cause | None:
    """Return the first cause in ``listed`` that matches a cell; None if none does."""
    return next((cause for cause in listed if any(fnmatchcase(cell, pattern) for pattern in cause.cells)), None)


@cache
def cells_of() -> Mapping[Cause, list[str]]:
    """Return the refuted cells of each cause."""
    listed = causes()
    found: dict[Cause, list[str]] = {cause: [] for cause in listed}
    for page, text in pages().items():
        for cell in refuted(text):
            cause = cause_of(cell, [each for each in listed if each.page == page])
            if cause is not None:
                found[cause].append(cell)
    return found


def run(cause: Cause, python: str) -> dict[str, Any]:
    """Make the reproducer of a cause, run it by ``python`` in an empty folder, and return the result."""
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as empty:
        script, seconds = FINDINGS / "reproducers" / cause.reproducer, 0.0
        if cause.reproducer.startswith("hf:"):
            script = Path(made) / "script.py"
            seconds = _make(cause.reproducer, script)
        text = script.read_text("utf-8")
        seeds = SEEDS if SEEDED in text[:1000] else SEEDS[:1]
        arguments = [[str(seed)] if len(seeds) > 1 else [] for seed in seeds]
        isolated = ["-I"] if script.suffix == ".py" else []  # others are run by the program that PYTHON names
        runs = [_ended([python, *isolated, str(script), *more], empty) for more in arguments]
    found = {"statuses": [status for status, *_ in runs], "made": seconds, "run": runs[0][2], "said": runs[0][1]}
    return {**found, "script": text}


def _make(reproducer: str, script: Path) -> float:
    """Write the script of ``specverify reproduce``; return the CPU seconds that took."""
    from specverify.run.catalogue import find_subject  # the page is read without an engine
    from specverify.run.replays import first_case
    from specverify.run.reproduce import reproduction, reproduction_of_error

    name, _, check = reproducer.partition(" --check ")
    begun, subject = time.process_time(), find_subject(name)
    found = reproduction(*first_case(subject, check)) if check else reproduction_of_error(subject)
    script.write_text(found.script, "utf-8")
    return time.process_time() - begun


def _ended(command: list[str], folder: str | None) -> tuple[int, str, float]:
    """Run a command; return its exit status, the last line that it printed, and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = (done.stdout.strip() or done.stderr.strip()).rpartition("\n")[2]
    return done.returncode, said, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def page(work: Path) -> str:
    """Return the page written from the results in the folder ``work``."""
    text, last, told = HEAD, "", pages()
    for cause, cells in cells_of().items():
        if cause.page != last:
            text += f"{'' if not last else chr(10)}## {cause.page}\n\n{TABLE}"
            last = cause.page
        file = work / f"{named(cause)}.json"
        controls = f"{without_speculation(cells, told[cause.page])} | {mended_of(cause, cells, work)}"
        text += _row(cause, len(cells), json.loads(file.read_text("utf-8")) if file.exists() else None, controls)
    return text


def _row(cause: Cause, cells: int, found: dict[str, Any] | None, controls: str) -> str:
    command = (
        f"`specverify reproduce {cause.reproducer}`" if cause.reproducer.startswith("hf:") else f"`{cause.reproducer}`"
    )
    if found is None:
        return f"| {cause.cause} | {cells} | {command} | not run |  |  |  | {controls} |\n"
    times = f"{found['statuses'].count(1)} of {len(found['statuses'])}"
    made = f"{found['made']:.0f}" if found["made"] else ""
    said = found["said"].replace("|", "/")
    said = said if len(said) <= 160 else f"{said[:157]}..."
    return f"| {cause.cause} | {cells} | {command} | {times} | {made} | {found['run']:.0f} | {said} | {controls} |\n"


def named(cause: Cause) -> str:
    """Return the name of the file with a cause's result."""
    return "".join(letter if letter.isalnum() else "_" for letter in cause.reproducer)


def main() -> None:
    """Run the reproducers whose result is not in the folder yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--python", action="append", default=[], metavar="REPRODUCER=PYTHON")
    parser.add_argument("--only", default="")
    parser.add_argument("--write", type=Path, default=None)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    pythons = dict(item.split("=", 1) for item in given.python)
    for cause in causes():
        file = given.work / f"{named(cause)}.json"
        python = next((path for start, path in pythons.items() if cause.reproducer.startswith(start)), None)
        if python is not None and given.only in cause.reproducer and not file.exists():
            try:
                found = run(cause, python)
            except Exception as error:  # noqa: BLE001 - an engine may raise anything; the others are run all the same
                print(f"{cause.reproducer}: not made, {type(error).__name__}: {error}", flush=True)
                continue
            print(f"{cause.reproducer}: {found['statuses']} {found['said']}", flush=True)
            file.write_text(json.dumps(found), "utf-8")
    if given.write is not None:
        given.write.write_text(page(given.work), "utf-8")


if __name__ == "__main__":
    main()
