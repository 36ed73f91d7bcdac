"""Laws of NumPy that are a monotone function of one uniform or exponential random number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.intercept.boundary import SMALLEST
from specverify.intercept.numpy.generator import NumpyGenerator, shape_of
from specverify.intercept.unknowns.uniform import refusal


def _logistic(generator: NumpyGenerator, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    """Answer by ``log(u / (1 - u))``; the ends of what the library returns are those of u."""
    u = generator.uniforms("logistic", shape_of(size, loc, scale), parameters=(0.0, 1.0))
    return scale * -np.log(1 / np.maximum(u, SMALLEST) - 1) + loc


def _beta(generator: NumpyGenerator, a: Any, b: Any, size: Any = None) -> Any:
    """Answer where one of the parameters is 1: a power of a uniform."""
    if np.ndim(a) or np.ndim(b) or 1 not in (a, b):
        raise refusal("a beta law is answered where one of its parameters is 1 and both are numbers")
    u = generator.uniforms("beta", size, parameters=(a, b))
    return u ** (1 / a) if b == 1 else 1 - u ** (1 / b)


def _of_exponential(function: str, image: Callable[[Any, Any], Any], default: Any = None) -> Callable[..., Any]:
    """Return the answer to a function of one parameter: ``image`` of an exponential and that."""

    def answer(generator: NumpyGenerator, *given: Any, size: Any = None, **named: Any) -> Any:
        parameter = given[0] if given else next(iter(named.values()), default)
        if np.ndim(parameter):
            raise refusal(f"{function} is answered where its parameter is a number")
        drawn = generator.exponentials(function, given[1] if len(given) > 1 else size, parameters=(parameter,))
        return image(drawn, parameter)

    return answer


_MOST_TRIALS = 2.0**62


def _trials(drawn: Any, chance: Any) -> Any:
    with np.errstate(divide="ignore"):
        found = np.floor(drawn / -np.log1p(-chance)) + 1
    valued = isinstance(found, np.floating | np.ndarray) and found.dtype.kind == "f"
    return np.minimum(found, _MOST_TRIALS).astype(np.int64) if valued else found


LAWS: dict[str, Callable[..., Any]] = {
    "logistic": _logistic,
    "beta": _beta,
    "geometric": _of_exponential("geometric", _trials),
    "pareto": _of_exponential("pareto", lambda drawn, a: np.expm1(drawn / a)),
    "power": _of_exponential("power", lambda drawn, a: np.exp(-drawn / a)),
    "rayleigh": _of_exponential("rayleigh", lambda drawn, scale: scale * np.sqrt(2 * drawn), 1.0),
    "weibull": _of_exponential("weibull", lambda drawn, a: drawn ** (1 / a)),
}
"""By the name of the method."""
