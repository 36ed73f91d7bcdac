"""List the mutants that survived ``mutmut run``: one table row per module, then every survivor with the reason.

Run ``python tools/mutation/survivors.py`` where ``mutmut run`` wrote its folder ``mutants``. The reasons are in
``equivalent.toml`` beside this file, keyed by the changed lines, since the numbers of mutants shift with the code. The
exit status is 1 if a mutant survived, or no test reached it, and it has no reason in that file.
"""

from __future__ import annotations

import ast
import difflib
import json
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

MUTANTS = Path("mutants")
REASONS = Path(__file__).with_name("equivalent.toml")
COLUMNS = ("killed", "timed out", "survived", "untested", "not run")
OUTCOMES = {1: "killed", 3: "killed", 0: "survived", 5: "untested", 33: "untested", None: "not run"}


class Change(NamedTuple):
    """What a mutant changed in a function: the lines it removed and the lines it added."""

    module: str
    function: str
    old: str
    new: str


def outcome(code):
    """Return the table column for the exit status ``code`` of a mutmut worker.

    Codes that are not listed are signals and codes of the time limit.
    """
    return OUTCOMES.get(code, "timed out")


def lines_of(function):
    """Return the lines of a function without its name, which differs in every mutant."""
    first, *rest = ast.unparse(function).splitlines()
    return [first[first.index("(") :], *rest]


def changes(module):
    """Return (change, outcome) for every mutant of a module, in mutmut's order."""
    meta = json.loads(Path(f"{MUTANTS / module}.meta").read_text("utf-8"))
    tree = ast.parse((MUTANTS / module).read_text("utf-8"))
    functions = {node.name: lines_of(node) for node in tree.body if "__mutmut_" in getattr(node, "name", "")}
    found = []
    for name, code in meta["exit_code_by_key"].items():
        mutant = name.rpartition(".")[2]
        function = mutant.partition("__mutmut_")[0]
        different = [*difflib.ndiff(functions[f"{function}__mutmut_orig"], functions[mutant])]
        old, new = (" ".join(line[2:].strip() for line in different if line[0] == sign) for sign in "-+")
        found.append((Change(module, function.removeprefix("x_"), old, new), outcome(code)))
    return found


def row(name, counts):
    """Return one row of the table; the score is the share of mutants that were run and did not survive."""
    ran = counts.total() - counts["not run"]
    noticed = counts["killed"] + counts["timed out"]
    score = f"{100 * noticed / ran:.1f} %" if ran else "-"
    return f"| {name} | {counts.total()} | {' | '.join(str(counts[column]) for column in COLUMNS)} | {score} |\n"


def main():
    """Write the table and the list as Markdown to standard output; return the exit status."""
    stated = tomllib.loads(REASONS.read_text("utf-8")).get("mutant", [])
    reasons = {Change(*(entry[field] for field in Change._fields)): entry["why"] for entry in stated}
    table, listed, total = "", "", Counter()
    unexplained = 0
    for meta in sorted(MUTANTS.glob("**/*.py.meta")):
        module = meta.relative_to(MUTANTS).with_suffix("").as_posix()
        found = changes(module)
        if not found:
            continue
        counts = Counter(result for _, result in found)
        total += counts
        table += row(f"`{module}`", counts)
        for change, result in found:
            if result in {"survived", "untested"}:
                why = reasons.get(change, "")
                unexplained += not why
                listed += f"| `{change.function}` | `{change.old}` | `{change.new}` | {why or '**no reason**'} |\n"
    write = sys.stdout.write
    write(f"| module | mutants | {' | '.join(COLUMNS)} | score |\n|---|{'---:|' * (len(COLUMNS) + 2)}\n")
    write(table + row("all", total))
    write(f"\n| function | original | mutant | why both behave alike |\n|---|---|---|---|\n{listed}")
    write(f"\n{unexplained} without a reason\n")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
