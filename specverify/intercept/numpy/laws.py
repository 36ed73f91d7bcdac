"""How NumPy's generators draw from ``distributions``: what stands among the arguments of their methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.intercept.distributions import DISTRIBUTIONS
from specverify.intercept.numpy.generator import NumpyGenerator, shape_of
from specverify.intercept.unknowns.uniform import refusal


def _logistic(generator: NumpyGenerator, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
    u = generator.uniforms("logistic", shape_of(size, loc, scale), parameters=(0.0, 1.0))
    return DISTRIBUTIONS["logistic"].image(u, loc, scale)


def _beta(generator: NumpyGenerator, a: Any, b: Any, size: Any = None) -> Any:
    """Answer where one of the parameters is 1."""
    if np.ndim(a) or np.ndim(b) or 1 not in (a, b):
        raise refusal("parameters", "a beta law is answered where one of its parameters is 1 and both are numbers")
    return DISTRIBUTIONS["beta"].image(generator.uniforms("beta", size, parameters=(a, b)), a, b)


def _of_one_parameter(function: str, default: Any = None) -> Callable[..., Any]:
    """Return the answer to a function of one parameter."""

    def answer(generator: NumpyGenerator, *given: Any, size: Any = None, **named: Any) -> Any:
        parameter = given[0] if given else next(iter(named.values()), default)
        if np.ndim(parameter):
            raise refusal("parameters", f"{function} is answered where its parameter is a number")
        drawn = generator.exponentials(function, given[1] if len(given) > 1 else size, parameters=(parameter,))
        return DISTRIBUTIONS[function].image(drawn, parameter)

    return answer


LAWS: dict[str, Callable[..., Any]] = {
    "logistic": _logistic,
    "beta": _beta,
    **{name: _of_one_parameter(name) for name in ("geometric", "pareto", "power", "weibull")},
    "rayleigh": _of_one_parameter("rayleigh", 1.0),
}
"""By the name of the method."""
