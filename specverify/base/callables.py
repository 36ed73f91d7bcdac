"""User callables: keys by identity, and the first line of their docstrings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any

_EQUAL_IF_THE_SAME = (MethodType, BuiltinMethodType)


def told_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable that calls ``function``, and that a cache can use as a key.

    The result is hashable, and equal only to results for the identical object ``function``.
    """
    equal: object = type(function).__eq__
    if equal is object.__eq__ or isinstance(function, _EQUAL_IF_THE_SAME):
        return function
    called: Callable[..., Any] = function.__call__  # type: ignore[operator]
    return called


def first_line(function: Callable[..., Any], otherwise: str) -> str:
    """Return the first line of a callable's docstring; if it has none, the first line of ``otherwise``.

    For ``functools.partial`` the docstring is that of the wrapped function.
    """
    while isinstance(function, partial):
        function = function.func
    return (getattr(function, "__doc__", None) or otherwise).strip().partition("\n")[0]
