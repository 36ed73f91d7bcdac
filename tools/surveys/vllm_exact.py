"""Enumerate the calls of ``vllm:exact`` and write their table, with one process for each method of speculation.

    python tools/surveys/vllm_exact.py [--work FOLDER] [--write PAGE] [--only WORD]

The engine must be installed. A cell whose result is in FOLDER is not enumerated again. ``--only`` enumerates the cells
whose name contains WORD, and prints their table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from specverify.checks import Conditions, check_named
from specverify.run.catalogue import expanded, find_subject
from specverify.run.verify import Checklist, verify_subject

BEGIN, END = "<!-- exact -->\n", "<!-- exact end -->\n"
HEAD = "| call | runs | TV | rounding | law | caches | CPU s |\n|---|---:|---:|---:|---|---|---:|\n"
LAW = "law_is_target"
MORE = {"/top-k 2/two tokens": ("program_is_its_draws",), "/top-k 2/": ("cache_equals_prefill",)}
"""Words of a name -> checks beside that of the law, which take as long again and say the same at other options."""
SECONDS = 3600.0


def result_file(folder: Path, name: str) -> Path:
    """Return the path of the result of the cell ``name``."""
    return folder / f"{name.replace('/', ' of ')}.json"


def enumerate_here(names: Sequence[str], folder: Path) -> None:
    """Enumerate the named cells in this process, and write the result of each."""
    from specverify.engines.vllm.adapter import counters
    from specverify.engines.vllm.exact import EXACT_WAYS

    for name in names:
        begun, way = time.process_time(), EXACT_WAYS[name.split("/")[1]]
        before = counters(way)["drafted"]
        checks = (*(check for words, more in MORE.items() if words in name for check in more), LAW)
        checklist = Checklist(tuple(map(check_named, checks)), Conditions(), SECONDS)
        verdicts = {verdict.check: verdict for verdict in verify_subject(find_subject(name), checklist)}
        figures = verdicts[LAW].figures
        result = {
            "name": name,
            "status": {check: verdict.status.value for check, verdict in verdicts.items()},
            "statement": verdicts[LAW].statement,
            "runs": figures.get("runs"),
            "tv": figures.get("tv"),
            "rounding": figures.get("rounding"),
            "drafted": counters(way)["drafted"] - before,
            "seconds": time.process_time() - begun,
        }
        begun_file = result_file(folder, name).with_suffix(".begun")
        begun_file.write_text(json.dumps(result), "utf-8")
        begun_file.rename(result_file(folder, name))
        print(name, result["status"], f"{result['seconds']:.0f} s", flush=True)
    sys.stdout.flush()
    os._exit(0)  # an engine that is spent may wait for its threads for minutes


def law_of(result: dict[str, Any]) -> str:
    """Return the status of the law; ``not covered`` if it holds in calls that draft nothing."""
    status = str(result["status"][LAW])
    return "not covered" if status == "holds" and not result["drafted"] else status


def table(results: Sequence[dict[str, Any]]) -> str:
    """Return a line of counts, and the table with one row per cell."""
    rows = []
    for result in results:
        status, caches = law_of(result), result["status"].get("cache_equals_prefill", "")
        numbers = [f"{result[key]:.1e}" if result[key] is not None else "" for key in ("tv", "rounding")]
        name = result["name"].partition("/")[2]
        caches = "" if caches == "not applicable" else caches
        cells = (name, result["runs"], *numbers, status, caches, f"{result['seconds']:.0f}")
        rows.append(f"| {' | '.join(map(str, cells))} |\n")
    held = sum(law_of(result) == "holds" for result in results)
    runs, seconds = (sum(result[key] or 0 for result in results) for key in ("runs", "seconds"))
    return f"{len(results)} calls, {held} hold; {runs} runs, {seconds:.0f} seconds.\n\n{HEAD}{''.join(rows)}"


def main() -> None:
    """Enumerate the cells that have no result yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--write", type=Path, default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--here", nargs="*", default=())
    given = parser.parse_args()
    folder = given.work or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    if given.here:
        enumerate_here(given.here, folder)
    names = [name for name in expanded("vllm:exact") if given.only in name]
    for _, cells in groupby(names, key=lambda name: name.split("/")[1]):
        left = [name for name in cells if not result_file(folder, name).exists()]
        if left:
            command = [sys.executable, __file__, "--work", str(folder), "--here", *left]
            subprocess.run(command, check=False)
    done = [file for name in names if (file := result_file(folder, name)).exists()]
    result = table([json.loads(file.read_text("utf-8")) for file in done])
    if given.write is None:
        print(result)
        return
    before, rest = given.write.read_text("utf-8").split(BEGIN)
    given.write.write_text(before + BEGIN + result + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
