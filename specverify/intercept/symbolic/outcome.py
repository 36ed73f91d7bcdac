"""What a run ends with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specverify.intercept.symbolic.deferred import Categorical, is_open, known
from specverify.intercept.symbolic.numbers import opened
from specverify.laws import rounding
from specverify.laws.paths import Undecided


def final_outcome(elements: Sequence[Any]) -> Any:
    """Return what a run ends with: a tuple of values, or ``Undecided`` where some were never looked at."""
    elements = [opened(element) for element in elements]
    open_ones = [element for element in elements if is_open(element)]
    sources = {id(getattr(element, "draw", None) and (element.draw.origin or element.draw)) for element in open_ones}
    independent = all(isinstance(element, Categorical) and element.alone for element in open_ones)
    if not open_ones or not independent or len(sources) < len(open_ones):
        return tuple(known(element) for element in elements)
    result: list[tuple[tuple[Any, ...], float]] = [((), 1.0)]
    for element in elements:
        choices = _outcomes(element) if is_open(element) else [(known(element), 1.0)]
        result = [((*values, value), weight * mass) for values, weight in result for value, mass in choices]
    return Undecided(tuple(result))


def _outcomes(element: Categorical) -> list[tuple[int, float]]:
    """Return the law of a draw that nobody looked at: a decision all the same."""
    result = element.outcomes()
    rounding.drew(len(result))
    return result
