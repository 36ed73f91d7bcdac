"""Write the matrix of docs/engines.md: engines and methods of speculation by promise, with a link in each cell.

python tools/surveys/matrix.py
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- matrix -->\n", "<!-- end -->\n"
TABLE, ROWS = "\n<!-- table -->\n", "every-row"
"""The mark of an engine's table on its page, and the anchor of the heading above it."""
WORDS: Mapping[str, str] = {"holds": "hold", "refuted": "refuted", "unusable": "raise", "unknown": "not decided"}
"""Verdict of a row -> its word in the matrix."""
PROMISES: Mapping[str, str] = {
    "greedy text": r"greedy",
    "ends": r"(an end|two ends|no end|stop |at least|minimum length)",
    "beside other requests": r"others beside",
    "returned values": r"(log-probabilities|confidences)$",
    "seeds": r"(a seed again|texts of plain seeds)",
    "law": r"",
}
"""Promise -> how the names of its rows begin; a row belongs to the first promise that matches."""
HEAD = f"| engine | way | {' | '.join(PROMISES)} |\n|---|---|{'---|' * len(PROMISES)}\n"


def promise_of(option: str) -> str:
    """Return the promise, a key of ``PROMISES``, that a row with the options ``option`` examines."""
    return next(promise for promise, begins in PROMISES.items() if re.match(begins, option))


def counted(page: Path) -> dict[str, dict[str, Counter[str]]]:
    """Return method of speculation -> promise -> number of rows with each verdict; empty if the page has no table."""
    text, counts = page.read_text("utf-8"), dict[str, dict[str, Counter[str]]]()
    rows = re.findall(rf"^\| ([^|]+?) \| ({'|'.join(WORDS)}) \|", text, re.MULTILINE) if TABLE in text else ()
    for name, verdict in rows:
        way, _, option = name.partition("/")
        counts.setdefault(way, {}).setdefault(promise_of(option), Counter())[verdict] += 1
    return counts


def cell(verdicts: Counter[str], page: Path) -> str:
    """Return a link to the rows of a page that says how many of them have each verdict; empty without rows."""
    told = ", ".join(f"{verdicts[verdict]} {word}" for verdict, word in WORDS.items() if verdicts[verdict])
    return f"[{told}](findings/{page.name}#{ROWS})" if told else ""


def lines() -> Iterator[str]:
    """Yield one line per engine and method of speculation."""
    for page in sorted(DOCS.glob("findings/*.md")):
        for way, promises in counted(page).items():
            cells = (cell(promises.get(promise, Counter()), page) for promise in PROMISES)
            yield f"| [{page.stem}](findings/{page.name}) | {way} | {' | '.join(cells)} |\n"


def matrix() -> str:
    """Return the whole matrix as a Markdown table."""
    return HEAD + "".join(lines())


def main() -> None:
    """Write the table between its marks in docs/engines.md."""
    page = DOCS / "engines.md"
    before, rest = page.read_text("utf-8").split(BEGIN)
    page.write_text(before + BEGIN + matrix() + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
