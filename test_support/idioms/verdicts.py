"""What the checks say of idioms and their twins: run as a script, this writes a line for each.

    verdicts.py FILE [FIRST LAST]

adds lines to a file, for the idioms from the first to before the last, those that are there already left out. Every
idiom is examined in one sixth of the scenarios, the next one in the next sixth. ``idioms_page.py`` reads the lines.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from specverify.subjects.verifier import verifier_subject
from test_support.idioms.judged import worst_of
from test_support.idioms.tables import IDIOMS

SHARES = 6


def told(verify, gamma, place):
    """Return the worst status of the exact checks that had a case, and its statement; stops at a refutation."""
    return worst_of(verifier_subject(verify, verify.__name__, (gamma,)), place, SHARES)


def line_of(place):
    """Return the results for the idiom at one place of the tables."""
    idiom, found = IDIOMS[place], {}
    for which in ("right", "wrong"):
        begin = time.perf_counter(), time.process_time()
        status, why = told(getattr(idiom, which), idiom.gamma, place)
        seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
        found[which] = {"status": status, "why": why, "seconds": seconds}
    return {"table": idiom.table, "name": idiom.name, **found}


def there(file):
    """Return the idioms for which a file has lines, by table and name."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    return {(line["table"], line["name"]): line for line in map(json.loads, lines)}


if __name__ == "__main__":
    file, *ends = sys.argv[1:]
    first, last = map(int, ends or (0, len(IDIOMS)))
    for place in range(first, min(last, len(IDIOMS))):
        if (IDIOMS[place].table, IDIOMS[place].name) not in there(Path(file)):
            line = json.dumps(line_of(place))
            with Path(file).open("a", encoding="utf-8") as out:
                out.write(line + "\n")
