"""Parameters in the number type of a pmf: exact for rationals, floats for floats.

With rationals, a float stands for the decimal that was written: 0.4 is 2/5, and not the float64 next to it, which is
above 2/5. Otherwise a threshold would exclude the entry that equals it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .types import Pmf


def parameter(value: Any, like: Pmf) -> Any:
    """Return ``value`` as a ``Fraction`` if ``like`` is an object array, else as a float."""
    return exact(value) if like.dtype == object else float(value)


def exact(value: Any) -> Fraction:
    """Return ``value`` as a ``Fraction``: 0.4 becomes 2/5, and the float of 1/3 becomes 1/3.

    A float becomes the fraction with a denominator of at most a million that rounds to it. If there is none, it becomes
    its shortest decimal.
    """
    if not isinstance(value, float):
        return Fraction(value)
    simple = Fraction(value).limit_denominator(1_000_000)
    return simple if float(simple) == value else Fraction(str(value))
