"""Laws that are a monotone function of one uniform or one exponential number: one row each, for every library.

Images are written with NumPy's functions, which take numbers, arrays of them, and random numbers without a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.boundary import SMALLEST


class Distribution(NamedTuple):
    """``image(noise, *parameters)``, of an exponential of rate 1 or of a uniform."""

    exponential: bool
    image: Callable[..., Any]


MOST_WHOLE = 2.0**62


def _trials(drawn: Any, chance: Any) -> Any:
    with np.errstate(divide="ignore"):
        result = np.floor(drawn / -np.log1p(-chance)) + 1
    valued = isinstance(result, np.floating | np.ndarray) and result.dtype.kind == "f"
    return np.minimum(result, MOST_WHOLE).astype(np.int64) if valued else result


def _logit(u: Any, loc: Any, scale: Any) -> Any:
    """Return ``log(u / (1 - u))``; the ends of what a library returns are those of u."""
    return scale * -np.log(1 / np.maximum(u, SMALLEST) - 1) + loc


def _beta(u: Any, a: Any, b: Any) -> Any:
    """Return a power of a uniform: one of the parameters is 1."""
    return u ** (1 / a) if b == 1 else 1 - u ** (1 / b)


DISTRIBUTIONS: dict[str, Distribution] = {
    "logistic": Distribution(exponential=False, image=_logit),
    "beta": Distribution(exponential=False, image=_beta),
    "geometric": Distribution(exponential=True, image=_trials),
    "pareto": Distribution(exponential=True, image=lambda drawn, a: np.expm1(drawn / a)),
    "power": Distribution(exponential=True, image=lambda drawn, a: np.exp(-drawn / a)),
    "rayleigh": Distribution(exponential=True, image=lambda drawn, scale: scale * np.sqrt(2 * drawn)),
    "weibull": Distribution(exponential=True, image=lambda drawn, a: drawn ** (1 / a)),
}
"""By their names in NumPy."""
