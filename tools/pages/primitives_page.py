"""Writes ``docs/primitives.md`` from the table of primitives.

Run ``python -m tools.pages.primitives_page docs/primitives.md``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from specverify.intercept.symbolic.primitives import PRIMITIVES, Blank

HEAD = """# Operations on random numbers

This page lists the operations that a program may apply to a random number while it is enumerated. A random number is
then symbolic: its value is left open, so an operation on it needs a rule. For example, `-log(u)` of a uniform u is
kept as a rule, and a comparison `-log(u) < 2` becomes `u > exp(-2)`. Look up your operation here if a verdict is
UNKNOWN because an operation was refused. The columns:

* *operation*: its name in NumPy, or a name of this project. Three of these, such as `normal_of_logistic`, belong to no
  library: they map a logistic random number to a normal, Cauchy or Laplace one, for the random calls of these laws.
* *family*: the kind of operation.
* *scalar*: whether there is a rule if the operand is a single random number. In the families reduction, extreme, scan,
  ordering, order alone and lookup this rule takes a whole array of numbers.
* *vector*: the same for a noise vector, which has one random number for each token of a real vocabulary (thousands of
  tokens).
* *outcome*: the same for a draw with finitely many outcomes, such as a token, whose outcome is left open.
* *result*: the dtype of the result. Operations that also return indices return these as whole numbers.
* *torch*, *JAX*, `math`, *Python*: the names of the operation there.

"no (1)" refers to the reasons below the table. If the column *scalar* or *vector* has no rule, or the operation is
not in the table, the program is [refused](refusals.md). If the column *outcome* has no rule, the program is not
refused, and the reason states what happens instead. The table is written from
`specverify/intercept/symbolic/primitives.py`. To add an operation, add a row there
([contributing](contributing.md#support-a-call-that-is-not-answered)).

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
