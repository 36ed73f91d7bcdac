"""Writes ``docs/primitives.md`` from the table of primitives.

Run ``python -m tools.pages.primitives_page docs/primitives.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.intercept.symbolic.primitives import PRIMITIVES, Blank

HEAD = """# Operations on random numbers

A random number has no value while a program is enumerated. Each operation that can be applied to one is a row of the
table in `specverify/intercept/symbolic/primitives.py`. A row holds the rule of one number
(`scalar`), of a noise vector at a real vocabulary (`vector`), and of a draw whose outcomes are computed all at once
(`outcome`), and the names of the operation in each library. A front end maps names to rows; an operation without a row,
or with a blank column, is refused with that reason. The scalar rule of a reduction, a scan, an order or a lookup takes
a row of numbers and outcomes (`rows.py`). `torch.atan` is an example of a row with a rule of its own: one
entry in `steps.RULES` and one row.

| operation | family | scalar | vector | outcome | result | torch | JAX | `math` | Python |
|---|---|---|---|---|---|---|---|---|---|
"""


def _cell(rule: object, notes: dict[str, int]) -> str:
    if not isinstance(rule, Blank):
        return "yes"
    return f"no ({notes.setdefault(rule.reason, len(notes) + 1)})"


def page() -> str:
    """Return the text of ``docs/primitives.md``."""
    notes: dict[str, int] = {}
    rows = []
    for row in PRIMITIVES.values():
        columns = (_cell(each, notes) for each in (row.scalar, row.vector, row.outcome))
        names = (", ".join(f"`{name}`" for name in each) for each in (row.torch, row.jax, row.math, row.python))
        cells = (f"`{row.name}`", row.family.value, *columns, row.result.value, *names)
        rows.append(f"| {' | '.join(cells)} |\n")
    reasons = [f"* ({number}) {reason}\n" for reason, number in notes.items()]
    return HEAD + "".join(rows) + "\nWhy a column is blank:\n\n" + "".join(reasons)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
