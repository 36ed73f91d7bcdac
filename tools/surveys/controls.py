"""Examine refuted cells again with a corrected engine, the same adapter and the same checks: nothing may be refuted.

    python tools/surveys/controls.py --work FOLDER [--page PAGE] [--only WORD] [--fewer]

A cell that is still refuted has another cause than docs/findings/causes.toml states, or the harness is at fault: the
exit status is 1. The first row of each cause is also examined with the unchanged engine; ``--fewer`` examines no other
row. The results are kept in FOLDER, where reproducers.py reads them. Each page needs its engine.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mends.mending import Change, mended
from reproducers import Cause, cells_of, named
from survey import ALARM

from specverify.checks import Conditions, check_named
from specverify.run.catalogue import expanded, find_subject
from specverify.run.verify import Checklist, verify_subject

SAMPLED = ("samples_fit_law", "samples_agree")
SECONDS = 3600.0
PREFIXES = {
    "llama-cpp-python": "llama",
    "mlx-lm": "mlx",
    "onnxruntime-genai": "onnxruntime",
    "openvino-genai": "openvino",
    "speculative-decoding": "lucidrains",
    "transformers-table": "hf",
    "vllm-cpu": "vllm",
}
"""Page -> what its subjects begin with, and its mends: ``mends.of_PREFIX``."""


def mends_of(prefix: str) -> Mapping[str, tuple[Change, ...]]:
    """Return, for each cause, its changes of the engine, and those of other causes that share its cells."""
    found: Mapping[str, tuple[Change, ...]] = import_module(f"mends.of_{prefix}").OF_CAUSE
    return found


def rows_of(cells: Iterable[str]) -> dict[str, list[str]]:
    """Return the refuted cells of each row, in the order of the page."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        what, _, row = cell.rpartition(" at ")
        found.setdefault(row, []).append(what)
    return found


def examined(prefix: str, row: str, checks: Iterable[str]) -> dict[str, str]:
    """Return the status of each cell of a row; if a row of samples is one cell, the worst of its statuses."""
    exact = [what for what in checks if what]
    name = f"{prefix}:{row}" if row.startswith("alone/") else f"{prefix}:all/{row}"
    wanted = tuple(check_named(what.replace(" ", "_")) for what in exact or SAMPLED)
    conditions = Conditions() if exact else Conditions(false_alarm=ALARM / len(expanded(f"{prefix}:all")))
    verdicts = list(verify_subject(find_subject(name), Checklist(wanted, conditions, SECONDS)))
    for verdict in verdicts:
        if verdict.status.value not in {"holds", "not applicable"}:
            print(f"  {verdict.check}: {verdict.status.value}: {verdict.statement[:300]}", flush=True)
    if exact:
        found = {verdict.check: verdict.status.value for verdict in verdicts}
        return {f"{what} at {row}": found[what.replace(" ", "_")] for what in exact}
    statuses = [verdict.status.value for verdict in verdicts if verdict.status.value != "not applicable"]
    return {row: next((status for status in statuses if status != "holds"), "holds")}


def run(cause: Cause, cells: Sequence[str], kept: Mapping[str, Any], *, fewer: bool) -> Iterator[dict[str, Any]]:
    """Examine the first row of a cause with the unchanged engine, and each row with the corrected one.

    Yields all results so far after each row. ``kept`` are results of an earlier run, which is continued.
    """
    prefix, rows = PREFIXES[cause.page], rows_of(cells)
    first = next(iter(rows))
    as_it_is, found = kept.get("as it is") or examined(prefix, first, rows[first]), dict(kept.get("mended", {}))
    with mended(mends_of(prefix)[cause.cause]):
        for row, checks in rows.items():
            done = all(cell in found for cell in cells if rows_of([cell]).keys() == {row})
            if not done and (row == first or not fewer):
                found |= examined(prefix, row, checks)
            yield {"as it is": as_it_is, "mended": found}


def wrong_in(found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the cells that are not refuted with the unchanged engine, or do not hold with the corrected one."""
    refuted = [cell for cell, status in found["as it is"].items() if status not in {"refuted", "unusable"}]
    return refuted + [cell for cell, status in found["mended"].items() if status != "holds"]


def main() -> None:
    """Examine every cause whose result is not in the folder yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--page", choices=PREFIXES, default="transformers-table")
    parser.add_argument("--only", default="")
    parser.add_argument("--fewer", action="store_true")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    wrong = []
    for cause, cells in cells_of().items():
        if cause.page == given.page and given.only in cause.cause:
            file = given.work / f"mended_{named(cause)}.json"
            found = json.loads(file.read_text("utf-8")) if file.exists() else {}
            for found in run(cause, cells, found, fewer=given.fewer):  # noqa: B020 - goes on from what is kept
                file.write_text(json.dumps(found, indent=1), "utf-8")
            print(f"{cause.cause}: {found}", flush=True)
            wrong += wrong_in(found)
    sys.exit(f"these should be refuted as the engine is, and hold with it mended: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
