"""Verifiers that take a JAX key: each call gets a new one.

A required parameter ``key``, ``rng_key`` or ``prng_key`` of a function whose module imports jax, or ``rng`` of a
function whose code names jax, gets the result of ``jax.random.PRNGKey``: another key in every call and every run, as in
an engine that splits its key before each round.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from specverify.subjects.libraries import imported_beside, names_library

NAMES = ("key", "rng", "rng_key", "prng_key")


def keyed(verify: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``verify`` as a call that passes a new JAX key itself; ``verify`` unchanged if it takes no key."""
    if "jax" not in sys.modules or not (names_library(verify, "jax") or imported_beside(verify, "jax")):
        return verify
    try:
        signature = inspect.signature(verify)
    except (TypeError, ValueError):
        return verify
    taken = list(signature.parameters.values())
    result = [
        place for place, each in enumerate(taken)
        if each.name in NAMES and each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]  # fmt: skip
    if len(result) != 1:
        return verify
    place, name = result[0], taken[result[0]].name
    if name == "rng" and not names_library(verify, "jax"):  # it may be a generator of NumPy
        return verify
    by_name = taken[place].kind is inspect.Parameter.KEYWORD_ONLY

    @wraps(verify)
    def with_a_key(*args: Any, **kwargs: Any) -> Any:
        if by_name or len(args) < place:
            return verify(*args, **kwargs, **{name: _key()})
        return verify(*args[:place], _key(), *args[place:], **kwargs)

    with_a_key.__signature__ = signature.replace(  # type: ignore[attr-defined]  # what ``inspect`` reads first
        parameters=[each for each in taken if each.name != name]
    )
    return with_a_key


def _key() -> Any:
    """Return a new JAX key: in an intercepted run from its draws, otherwise from NumPy's legacy generator."""
    answers = sys.modules.get("specverify.intercept.jax.calls")
    if answers is not None and (result := answers.fresh_key()) is not None:
        return result
    return sys.modules["jax"].random.PRNGKey(np.random.randint(2**31))  # noqa: NPY002 - it is what ``seeded`` seeds
