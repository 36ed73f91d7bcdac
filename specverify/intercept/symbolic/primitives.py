"""Every operation on random numbers in one table, and its names in each library."""

from __future__ import annotations

from specverify.intercept.symbolic.comparisons import COMPARISONS
from specverify.intercept.symbolic.elementwise import ELEMENTWISE
from specverify.intercept.symbolic.primitive import Blank, Family, Primitive, Rule, spelled, table

PRIMITIVES = table(ELEMENTWISE.values(), COMPARISONS.values())
"""By name. Registering a name twice is an error."""
OF_TORCH, OF_JAX, OF_MATH, OF_PYTHON = (spelled(PRIMITIVES, each) for each in ("torch", "jax", "math", "python"))


def names_of(rows: dict[str, Primitive], *families: Family) -> dict[str, str]:
    """Return the rows of some families by their names in a library: name there -> name here."""
    return {name: row.name for name, row in rows.items() if row.family in families}


def rules_of(rows: dict[str, Primitive], column: str) -> dict[str, Rule]:
    """Return the rules of a column by the names of a library, of the rows that have one."""
    cells = {name: getattr(row, column) for name, row in rows.items()}
    return {name: cell for name, cell in cells.items() if not isinstance(cell, Blank)}


def names_with(rows: dict[str, Primitive], column: str) -> dict[str, str]:
    """Return the rows that have a rule in a column by their names in a library."""
    return {name: row.name for name, row in rows.items() if not isinstance(getattr(row, column), Blank)}
