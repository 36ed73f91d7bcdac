"""Smooth increasing functions that are steps of their own: the value, the inverse, the images and bounds of the slope.

A row of ``elementwise`` gives the names that the libraries have for each.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, pi  # by name: inside a block ``math`` has others
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """A strictly increasing and smooth function of every real number, in NumPy's functions of arrays."""

    of: Callable[[Any], Any]
    back: Callable[[Any], Any]
    """The inverse, of numbers inside ``images``."""
    images: tuple[float, float]
    """The infimum and the supremum of its values, which it does not have."""
    slopes: Callable[[Any, Any], tuple[Any, Any]]
    """``slopes(low, high)``: bounds of its derivative between two numbers, elementwise."""

    def inverse(self, images: Any) -> Any:
        """Return the numbers with these images; an infinite one beyond all images."""
        low, high = self.images
        inside = (images > low) & (images < high)
        found = self.back(np.where(inside, images, 0.5 * (max(low, -1.0) + min(high, 1.0))))
        return np.where(inside, found, np.where(images <= low, -inf, inf))


def _slopes_of_arctan(low: Any, high: Any) -> tuple[Any, Any]:
    """Bound ``1 / (1 + x^2)``, which falls with the distance from 0."""
    near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    far = np.maximum(np.abs(low), np.abs(high))
    return 1 / (1 + far * far), 1 / (1 + near * near)


RULES: dict[str, Rule] = {"arctan": Rule(np.arctan, np.tan, (-pi / 2, pi / 2), _slopes_of_arctan)}
"""By their names in NumPy."""
