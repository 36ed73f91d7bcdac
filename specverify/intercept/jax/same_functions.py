"""Recognise traced functions with the same content, so that a loop over a local function is compiled once.

A program that calls ``jax.lax.scan`` with a function defined inside another function gives JAX a new function object
in every call. JAX then traces and compiles it again, although its equations are the same. Here the first traced
function with the same content stands for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from jax._src import core

from specverify.intercept.run import PROCESS

_TRACED = (core.Jaxpr, core.ClosedJaxpr)
_MOST = 5_000
"""Number of functions that are kept; all are dropped when there are more."""


class _Unlike(Exception):  # noqa: N818 - no error: the function cannot be compared
    """Raised for a traced function whose content cannot be compared with that of another."""


def same_functions(parameters: dict[str, Any], key_of: Callable[[Any], Hashable | None]) -> dict[str, Any]:
    """Return ``parameters``, those of a primitive, with each traced function replaced by the first of the same content.

    ``key_of`` returns a hashable value that identifies the content of an array, or None.
    """
    changed = {}
    for name, value in parameters.items():
        if isinstance(value, _TRACED):
            changed[name] = _first_of(value, key_of)
        elif isinstance(value, tuple) and any(isinstance(each, _TRACED) for each in value):
            changed[name] = tuple(_first_of(each, key_of) for each in value)
    return {**parameters, **changed} if changed else parameters


def _first_of(function: Any, key_of: Callable[[Any], Hashable | None]) -> Any:
    """Return the first traced function that had the content of ``function``; ``function`` itself if it is the first.

    ``PROCESS.jax.first_of`` keeps the result as long as ``function`` lives; None stands for ``function`` itself.
    ``key_of`` returns a hashable value that identifies the content of an array, or None.
    """
    try:
        before = PROCESS.jax.first_of[function]
    except KeyError:
        try:
            first = PROCESS.jax.by_content.setdefault(_content(function, key_of), function)
        except (_Unlike, TypeError):  # TypeError: a parameter is not hashable
            first = function
        if len(PROCESS.jax.by_content) > _MOST:
            PROCESS.jax.by_content.clear()
        before = PROCESS.jax.first_of[function] = None if first is function else first
    return function if before is None else before


def _content(function: Any, key_of: Callable[[Any], Hashable | None]) -> Hashable:
    """Return a hashable value, equal for traced functions with the same line of definition and the same equations.

    Raises ``_Unlike`` if the function has effects or constants without a key, and ``TypeError`` if a parameter is not
    hashable.
    """
    jaxpr = getattr(function, "jaxpr", function)
    constants = tuple(map(key_of, getattr(function, "consts", ())))
    if jaxpr.effects or None in constants:
        raise _Unlike
    numbers: dict[Any, int] = {}

    def bound(variable: Any) -> Hashable:
        return numbers.setdefault(variable, len(numbers)), variable.aval

    def used(atom: Any) -> Hashable:
        if isinstance(atom, core.Literal):
            return atom.aval, type(atom.val), repr(atom.val)
        return numbers[atom]

    debug = jaxpr.debug_info
    return (
        type(function),
        str(debug.func_src_info),
        str(debug.func_name),
        constants,
        tuple(map(bound, (*jaxpr.constvars, *jaxpr.invars))),
        tuple(
            (
                equation.primitive,
                equation.ctx,
                tuple(map(used, equation.invars)),
                tuple((name, _of_parameter(value, key_of)) for name, value in equation.params.items()),
                tuple(map(bound, equation.outvars)),
            )
            for equation in jaxpr.eqns
        ),
        tuple(map(used, jaxpr.outvars)),
    )


def _of_parameter(value: Any, key_of: Callable[[Any], Hashable | None]) -> Hashable:
    if isinstance(value, _TRACED):
        return _content(value, key_of)
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_of_parameter(each, key_of) for each in value)
    hash(value)
    return type(value), repr(value) if isinstance(value, (float, complex)) else value
