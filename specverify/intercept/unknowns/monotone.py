"""The elementary functions of one number that keep its order, or turn it: one row for each, read by every library.

A row gives the names that the libraries have for the function. A function that is composed of others (``log2`` of
``log``) is computed by ``algebra``. One with a ``Rule`` is a step of its own: nothing else has to be written for it.
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


class Function(NamedTuple):
    """A function of one number, and its names."""

    name: str
    """In NumPy, and in ``algebra``."""
    torch: tuple[str, ...] = ()
    """In ``torch.ops.aten``."""
    jax: str = ""
    """The primitive."""
    math: str = ""
    """In Python's ``math``."""
    rule: Rule | None = None


def _slopes_of_arctan(low: Any, high: Any) -> tuple[Any, Any]:
    """Bound ``1 / (1 + x^2)``, which falls with the distance from 0."""
    near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    far = np.maximum(np.abs(low), np.abs(high))
    return 1 / (1 + far * far), 1 / (1 + near * near)


FUNCTIONS = (
    Function("log", ("log",), "log", "log"),
    Function("log2", ("log2",), "", "log2"),
    Function("log10", ("log10",), "", "log10"),
    Function("log1p", ("log1p",), "log1p", "log1p"),
    Function("exp", ("exp",), "exp", "exp"),
    Function("exp2", ("exp2",), "exp2", "exp2"),
    Function("expm1", ("expm1",), "expm1", "expm1"),
    Function("sqrt", ("sqrt",), "sqrt", "sqrt"),
    Function("rsqrt", ("rsqrt",), "rsqrt"),
    Function("cbrt", (), "cbrt", "cbrt"),
    Function("sigmoid", ("sigmoid",), "logistic"),
    Function("logit", ("logit", "special_logit")),
    Function("tanh", ("tanh",), "tanh", "tanh"),
    Function("arctan", ("atan",), "atan", "atan", Rule(np.arctan, np.tan, (-pi / 2, pi / 2), _slopes_of_arctan)),
)
NAMES = frozenset(function.name for function in FUNCTIONS)
"""All of them make floats of whole numbers."""
OF_TORCH = {name: function.name for function in FUNCTIONS for name in function.torch}
OF_JAX = {function.jax: function.name for function in FUNCTIONS if function.jax}
OF_MATH = {function.math: function.name for function in FUNCTIONS if function.math}
RULES = {function.name: function.rule for function in FUNCTIONS if function.rule}
