"""One operation on random numbers: a row that holds its rules side by side, and its names in every library.

A row has a rule for each kind of operand. ``scalar`` is the rule of one random number, ``vector`` that of a noise
vector, ``outcome`` that of a draw whose outcomes are computed all at once. A column that has no rule holds a ``Blank``
with the reason. Front ends map the names of their library to rows, and hold no rules of their own for these operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

from specverify.intercept.refusals import Declined


class Family(Enum):
    """What a front end does with the operands of a row before it applies the rule."""

    ARITHMETIC = "arithmetic"
    CLAMP = "clamp"
    """A number gets a positive probability: not answered in 16 bits."""
    WHOLE_PART = "whole part"
    """Drawn when the value is needed."""
    COMPARISON = "comparison"
    QUESTION = "question"
    """A comparison of one number with nothing."""


class Result(Enum):
    """The dtype of a result."""

    OPERANDS = "that of the operands"
    FLOATS = "floats, also of whole numbers"
    BOOLS = "bools"


class Rounding(Enum):
    """What an operation on floats of 16 bits rounds."""

    OPERANDS = "each operand, and the result"
    RESULT = "the result alone"
    NOTHING = "nothing"


class Blank(NamedTuple):
    """A rule that a row does not have."""

    reason: str

    def declined(self, name: str) -> Declined:
        """Return the answer of a rule that does not exist."""
        return Declined(f"{name}: {self.reason}")


Rule: TypeAlias = Callable[..., Any]


class Primitive(NamedTuple):
    """A row of the table."""

    name: str
    """As NumPy calls it."""
    family: Family
    scalar: Rule | Blank
    vector: Rule | Blank
    outcome: Rule | Blank
    """A function of NumPy that every library computes to the same bit."""
    result: Result = Result.OPERANDS
    rounding: Rounding = Rounding.OPERANDS
    pure: bool = False
    """Whether the scalar rule draws nothing and depends on the chain of steps alone, so that it can be remembered."""
    torch: tuple[str, ...] = ()
    """Names in ``torch.ops.aten``."""
    jax: tuple[str, ...] = ()
    """Names of primitives of JAX."""
    math: tuple[str, ...] = ()
    """Names in Python's ``math``."""
    python: tuple[str, ...] = ()
    """Operators of Python, without underscores."""
    numbers: Rule | None = None
    """What computes it of numbers alone; the function of NumPy that has the name where this is ``None``."""


def table(*families: Iterable[Primitive]) -> dict[str, Primitive]:
    """Return rows by name.

    Raises:
        ValueError: two rows have one name, or one name in a library.
    """
    rows = [row for family in families for row in family]
    value = _one_each((row.name, row) for row in rows)
    for library in ("torch", "jax", "math", "python"):
        spelled(value, library)
    return value


def spelled(rows: Mapping[str, Primitive], library: str) -> dict[str, Primitive]:
    """Return rows by their names in a library: ``torch``, ``jax``, ``math`` or ``python``."""
    return _one_each((name, row) for row in rows.values() for name in getattr(row, library))


def _one_each(pairs: Iterable[tuple[str, Primitive]]) -> dict[str, Primitive]:
    value: dict[str, Primitive] = {}
    for name, row in pairs:
        if name in value:
            raise ValueError(f"{name} is registered twice, by {value[name].name} and by {row.name}")
        value[name] = row
    return value
