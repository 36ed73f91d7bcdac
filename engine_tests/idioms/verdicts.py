"""What the checks say of idioms and their twins: run as a script, this writes a line for each.

    verdicts.py FILE [FIRST LAST]

adds lines to a file, for the idioms from the first to before the last. They are read by ``idioms_page.py``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tables import IDIOMS

from specverify.base.verdict import Status
from specverify.testing import check_verifier

WORST = (Status.REFUTED, Status.UNUSABLE, Status.UNKNOWN, Status.REFUSED)


def told(verify, gamma):
    """Return the worst status of all exact checks, and the check and the sentence of that."""
    verdicts = check_verifier(verify, gammas=(gamma,), form="row", on_fail=None)
    for status in WORST:
        for verdict in verdicts:
            if verdict.status is status:
                return status.value, f"{verdict.check}: {verdict.statement}"
    return Status.HOLDS.value, ""


def line_of(place):
    """Return what is found of the idiom at a place of the tables."""
    idiom, found = IDIOMS[place], {}
    for which in ("right", "wrong"):
        begin = time.perf_counter(), time.process_time()
        status, why = told(getattr(idiom, which), idiom.gamma)
        seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
        found[which] = {"status": status, "why": why, "seconds": seconds}
    return {"table": idiom.table, "name": idiom.name, **found}


if __name__ == "__main__":
    file, *ends = sys.argv[1:]
    first, last = map(int, ends or (0, len(IDIOMS)))
    for place in range(first, min(last, len(IDIOMS))):
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(json.dumps(line_of(place)) + "\n")
