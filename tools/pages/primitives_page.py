"""Writes ``docs/primitives.md`` from the table of primitives.

Run ``python -m tools.pages.primitives_page docs/primitives.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.intercept.symbolic.primitives import PRIMITIVES, Blank

HEAD = """# Operations on random numbers

Which operations a program may apply to a random number while it is enumerated. A random number is then symbolic: it
has no value, and an operation on it needs a rule. Each operation is a row of the table in
`specverify/intercept/symbolic/primitives.py`. The columns:

* *scalar*: whether there is a rule for a single random number. For a reduction, a scan, an order or a lookup this
  rule takes a whole array of numbers (`rows.py`).
* *vector*: for a noise vector, one random number for each token of a real vocabulary.
* *outcome*: for a draw with finitely many outcomes, such as a token, without choosing one.
* *result*: the dtype of the result.
* *torch*, *JAX*, `math`, *Python*: the names of the operation there. NumPy's name is the first column.

"no (1)" refers to the reasons below the table. If a program uses an operation without a row or without the rule that
it needs, it is refused with this reason, or the outcome is forced. To add an operation, add a row; `torch.atan` is an
example: one entry in `steps.RULES` and one row.

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
    return HEAD + "".join(rows) + "\nWhy there is no rule:\n\n" + "".join(reasons)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page())
