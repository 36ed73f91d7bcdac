"""Functions for callables of users: make them keys of caches, read their docstrings, change their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial, wraps
from types import BuiltinMethodType, MethodType
from typing import Any

POSITIONAL = frozenset({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
"""The kinds of parameters that can be passed by position, one by one."""
_EQUAL_IF_THE_SAME = (MethodType, BuiltinMethodType)


def told_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable that does the same as ``function`` and is a safe key of a cache.

    A user's class may define ``__eq__``, so that two different callables are equal or one is not hashable. The result
    is hashable, and two results are equal only if they belong to the same object ``function``.
    """
    equal: object = type(function).__eq__
    if equal is object.__eq__ or isinstance(function, _EQUAL_IF_THE_SAME):
        return function
    called: Callable[..., Any] = function.__call__  # type: ignore[operator]
    return called


def first_line(function: Callable[..., Any], otherwise: str) -> str:
    """Return the first line of a callable's docstring; if it has none, the first line of ``otherwise``.

    The docstring of a partial or decorated function is that of the function inside.
    """
    return (getattr(innermost(function), "__doc__", None) or otherwise).strip().partition("\n")[0]


def innermost(function: Callable[..., Any]) -> Any:
    """Return the function inside ``function``, without decorators and without ``functools.partial``."""
    result: Any = inspect.unwrap(function)
    while isinstance(result, partial):
        result = inspect.unwrap(result.func)
    return result


def signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of ``function``, with annotations as objects if they can be evaluated; None if unknown."""
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:  # noqa: BLE001 - an annotation may raise anything
        try:
            return inspect.signature(function)
        except (TypeError, ValueError):
            return None


def required_positional(signature: inspect.Signature) -> list[inspect.Parameter]:
    """Return the parameters of ``signature`` that can be passed by position and have no default."""
    return [item for item in signature.parameters.values() if item.kind in POSITIONAL and item.default is item.empty]


def with_first(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function that calls ``function``, but takes the argument ``name`` first.

    The other arguments keep their order. ``function`` must have a signature with this parameter, and the parameter must
    not be variadic.
    """
    signature = inspect.signature(function)
    taken = list(signature.parameters.values())
    place = list(signature.parameters).index(name)
    item = taken[place]

    @wraps(function)
    def called(value: Any, /, *args: Any, **named: Any) -> Any:
        if item.kind is item.KEYWORD_ONLY or len(args) < place:
            return function(*args, **named, **{name: value})
        return function(*args[:place], value, *args[place:], **named)

    first = item.replace(kind=item.POSITIONAL_ONLY, default=item.empty)
    return with_parameters(called, signature, [first, *taken[:place], *taken[place + 1 :]])


def with_parameters(
    function: Callable[..., Any], signature: inspect.Signature, parameters: Sequence[inspect.Parameter]
) -> Callable[..., Any]:
    """Set the signature that ``inspect.signature`` returns for ``function``, and return ``function``.

    The signature is ``signature`` with ``parameters`` in place of its own parameters. Calls are not changed.
    """
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # read first
    return function
