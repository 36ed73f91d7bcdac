"""Parameters in the arithmetic of a pmf: exact beside rationals, a float beside floats."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from .types import Pmf


def parameter(value: Any, like: Pmf) -> Any:
    """Return ``value`` as a ``Fraction`` beside an object array, else as a float. A float converts exactly."""
    return Fraction(value) if like.dtype == object else float(value)
