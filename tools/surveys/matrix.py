"""Write the matrix of docs/engines.md: how many rows hold for each engine and method of speculation.

python tools/surveys/matrix.py
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BEGIN, END = "<!-- matrix -->\n", "<!-- end -->\n"
HEAD = "| engine | way | rows | hold | refuted | raise | not decided |\n|---|---|---:|---:|---:|---:|---:|\n"
STATUSES = ("holds", "refuted", "unusable", "unknown")


def matrix() -> str:
    """Return the table with one line per method of speculation; links lead to the engines' pages."""
    lines = []
    for page in sorted(DOCS.glob("findings/*.md")):
        counts: dict[str, Counter[str]] = {}
        for name, status in re.findall(
            r"^\| ([^|]+?) \| (holds|refuted|unusable|unknown) \|", page.read_text("utf-8"), re.MULTILINE
        ):
            counts.setdefault(name.partition("/")[0], Counter())[status] += 1
        for way, found in counts.items() if "\n<!-- table -->\n" in page.read_text("utf-8") else ():
            numbers = " | ".join(str(found[status]) for status in STATUSES)
            lines.append(f"| [{page.stem}](findings/{page.name}) | {way} | {found.total()} | {numbers} |\n")
    return HEAD + "".join(lines)


def main() -> None:
    """Write the table between its marks in docs/engines.md."""
    page = DOCS / "engines.md"
    before, rest = page.read_text("utf-8").split(BEGIN)
    page.write_text(before + BEGIN + matrix() + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
