"""Callables of others: as keys, where what is remembered of one must never be taken for another; what they say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import BuiltinMethodType, MethodType
from typing import Any

_EQUAL_IF_THE_SAME = (MethodType, BuiltinMethodType)


def told_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what calls ``function``, can be a key, and is equal to nothing that is made of another object.

    Objects of data classes and named tuples are equal where their fields are, whatever they compute, or cannot be keys.
    """
    equal: object = type(function).__eq__
    if equal is object.__eq__ or isinstance(function, _EQUAL_IF_THE_SAME):
        return function
    called: Callable[..., Any] = function.__call__  # type: ignore[operator]
    return called


def first_line(function: Callable[..., Any], otherwise: str) -> str:
    """Return the first line of what a callable says of itself; of a partial call, what the function called says."""
    while isinstance(function, partial):
        function = function.func
    return (getattr(function, "__doc__", None) or otherwise).strip().partition("\n")[0]
