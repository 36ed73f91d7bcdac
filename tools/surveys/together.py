"""Examine rows of one engine in this process, and write the report of each: for engines that take seconds to start.

    python tools/surveys/together.py --folder FOLDER --seed SEED --alarm ALARM --seconds SECONDS ROW ...

Rows whose report is in FOLDER are left out. The process ends at a row that raises, because the engine may be unusable
afterwards; the next process continues after that row. ``survey.py`` starts the processes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from survey import CHECK_NAMES, report_file

from specverify.base.verdict import Status
from specverify.checks import Conditions, check_named
from specverify.report.data import as_data
from specverify.run.catalogue import find_subject
from specverify.run.verify import Checklist, verify_subject


def main() -> None:
    """Examine the rows that have no report yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--alarm", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    conditions = Conditions(false_alarm=given.alarm, seed=given.seed)
    checklist = Checklist(tuple(map(check_named, CHECK_NAMES)), conditions, given.seconds)
    for name in given.rows:
        file = report_file(given.folder, name)
        if file.exists():
            continue
        verdicts = list(verify_subject(find_subject(name), checklist))
        begun = file.with_suffix(".begun")
        begun.write_text(json.dumps(as_data(verdicts, given.alarm, given.seed)), "utf-8")
        begun.rename(file)
        print(name, *(verdict.status.value for verdict in verdicts), flush=True)
        if any(verdict.status is Status.UNUSABLE for verdict in verdicts):
            break
    sys.stdout.flush()
    os._exit(0)  # an engine that is spent may wait for its threads for minutes


if __name__ == "__main__":
    main()
