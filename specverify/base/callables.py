"""Functions for callables of users: make them keys of caches, compared by identity, and read their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any

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
