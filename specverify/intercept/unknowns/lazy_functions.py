"""The functions of NumPy as foreign code calls them: given random numbers one by one, or in lists, they see arrays.

NumPy asks arrays what its functions do to them, and takes a list for an array of objects without asking. So inside a
block each function is called with an array of random numbers where a list of such was given, or one alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.ma  # np.unique imports it when it is first called: in a block it would find other functions

from specverify.intercept.caller import is_ours_or_answered
from specverify.intercept.unknowns.lazy_arrays import LazyArray
from specverify.intercept.unknowns.lazy_numbers import LazyFloat, LazyInt

_NUMBERS, _CONTAINERS = frozenset({LazyFloat, LazyInt}), frozenset({list, tuple})
_LAZY = _NUMBERS | {LazyArray}
_EITHER = _LAZY | _CONTAINERS


def holds_lazy(values: Any) -> bool:
    """Return whether there is a lazy number in a value, or in what it contains."""
    if type(values) not in _CONTAINERS:
        return type(values) in _LAZY
    return not _EITHER.isdisjoint(map(type, values)) and any(map(holds_lazy, values))


def _seen(value: Any) -> Any:
    """Return an array for lists of random numbers, or for one; lists of arrays stay such, other values as they are."""
    if type(value) in _NUMBERS:
        return _array_of(value)
    if type(value) is np.ndarray and value.dtype == object and holds_lazy(value.reshape(-1).tolist()):
        return value.view(LazyArray)
    if type(value) not in _CONTAINERS or not holds_lazy(value):
        return value
    lengths = {len(each) if type(each) in _CONTAINERS else np.shape(each) for each in value}
    if len(lengths) == 1 and not any(isinstance(each, np.ndarray) for each in value):
        return _array_of(value)
    return type(value)(map(_seen, value))


def _array_of(value: Any) -> Any:
    return _REAL_ASARRAY(value, dtype=object).view(LazyArray)


def _function_of_float(self: LazyFloat, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Let a function of NumPy that is given a number, or a row of them as its arrays, see arrays."""
    given = [*args, *kwargs.values()]
    if not any(type(value) in _NUMBERS for value in given):
        given = [list(value) if isinstance(value, LazyArray) and value.ndim else value for value in given]
    given = [*map(_alone_too, given)]
    return func(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))


def _alone_too(value: Any) -> Any:
    return type(value)(map(_alone_too, value)) if type(value) in _CONTAINERS else _seen(value)


_REAL_ASARRAY, _NDARRAY = np.asarray, np.ndarray
LazyFloat.__array_function__ = _function_of_float  # type: ignore[attr-defined]  # as ``__array_ufunc__`` is


# What stands for the functions while a block is open


class _Called:
    """A function of NumPy that sees arrays of random numbers; everything else of it is as it was."""

    __slots__ = ("_real",)

    def __init__(self, real: Any) -> None:
        """Call ``real``."""
        self._real = real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function does."""
        for value in (*args, *kwargs.values()) if kwargs else args:
            kind = type(value)
            if kind in _CONTAINERS or (kind is _NDARRAY and value.dtype.char == "O"):
                break
        else:
            return self._real(*args, **kwargs)
        if not is_ours_or_answered(sys._getframe(1).f_code.co_filename):  # noqa: SLF001
            args, kwargs = tuple(map(_seen, args)), {name: _seen(value) for name, value in kwargs.items()}
        return self._real(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def _making(real: Callable[..., Any], first: str) -> Callable[..., Any]:
    """Return what makes an array as ``real`` does, and a lazy one of lazy numbers; ``first`` is what it calls those."""

    def make(*args: Any, **kwargs: Any) -> Any:
        return made(kwargs.pop(first), **kwargs) if first in kwargs else made(*args, **kwargs)

    def made(values: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(values, Iterator) and real is _FROM_ITERATOR:
            values = list(values)
        if not holds_lazy(values):
            return real(values, dtype, *args, **kwargs)
        found = _array_of(values)
        return found if dtype is None else found.astype(dtype)

    return make


_FROM_ITERATOR = np.fromiter
_DISPATCHED = type(np.sort)
FUNCTIONS: dict[str, Any] = {
    name: _Called(value) for name, value in vars(np).items() if isinstance(value, np.ufunc | _DISPATCHED)
}
_FIRST = {"array": "object", "asarray": "a", "fromiter": "iter"}
MADE: dict[str, Any] = {name: _making(getattr(np, name), first) for name, first in _FIRST.items()}
"""What stands for the functions that make arrays of numbers, by their names in NumPy."""
