"""Arrays of NumPy that hold random numbers nobody has valued.

They dispatch to ``algebra``, ``comparisons`` and ``races`` element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, SupportsIndex

import numpy as np

from specverify.intercept.native_types import methods_replaced
from specverify.intercept.unknowns.algebra import ALGEBRA
from specverify.intercept.unknowns.comparisons import YES_OR_NO
from specverify.intercept.unknowns.continuous import largest_of
from specverify.intercept.unknowns.lazy_numbers import (
    LazyFloat,
    LazyInt,
    asked,
    of_operands,
    opened,
    whole_part,
    wrapped,
)
from specverify.intercept.unknowns.lookups import crossing, goes_in_arrays, lookup
from specverify.intercept.unknowns.races import ranked, winner
from specverify.intercept.unknowns.uniform import refusal
from specverify.intercept.unknowns.wide import at_large_now, large
from specverify.laws import rounding


class LazyArray(np.ndarray[Any, Any]):
    """An object array of lazy numbers and numbers; what is computed of it without them is an ordinary array."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a function of NumPy to every element."""
        return on_elements(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Answer the functions that would compare elements with each other; run the others."""
        if func in _FUNCTIONS:
            return _FUNCTIONS[func](*args, **kwargs)
        return _lazy(super().__array_function__(func, types, args, kwargs))

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the largest, which random numbers race for."""
        return _extreme(self, axis, out, keepdims, largest=True)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the smallest, which random numbers race for."""
        return _extreme(self, axis, out, keepdims, largest=False)

    def max(self, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        """Return the largest, a random number."""
        return _best(self, axis, keepdims, largest=True, out=out, **more)

    def min(self, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        """Return the smallest, a random number."""
        return _best(self, axis, keepdims, largest=False, out=out, **more)

    def argsort(self, axis: Any = -1, *_: Any, **__: Any) -> Any:
        """Return the order of the numbers, as a race has it."""
        return _argsorted(self, axis)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return it as it is for another floating type, which has no digits to lose; whole parts are drawn."""
        if np.issubdtype(dtype, np.floating):
            return self.copy()
        if np.issubdtype(dtype, np.integer):
            parts = [whole_part("trunc", each) if isinstance(each, LazyFloat) else int(each) for each in self.flat]
            return np.array(parts, dtype=dtype).reshape(self.shape)
        return super().astype(dtype, *args, **kwargs)


def _of_float(self: LazyFloat, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a function of NumPy to a number, and to the elements of the other operands; their own arrays know how."""
    if any(isinstance(value, np.ndarray) and type(value) is not np.ndarray for value in inputs):
        return NotImplemented
    return on_elements(ufunc, method, inputs, kwargs)


LazyFloat.__array_ufunc__ = _of_float  # type: ignore[attr-defined]  # arrays are made of numbers, not numbers of arrays

_NAMES = {name: getattr(np, name) for name in ALGEBRA | YES_OR_NO if hasattr(np, name)}
KNOWN = {ufunc: name for name, ufunc in _NAMES.items()} | {vars(np)["_core"].umath.clip: "clip"}  # what np.clip calls
_REDUCED = {np.maximum: True, np.minimum: False, np.fmax: True, np.fmin: False}


def on_elements(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Apply a function to elements: one that is known by that, another by their methods."""
    for value in inputs:
        rounding.saw(getattr(value, "dtype", None))
    if method == "__call__" and ufunc.__name__ in _CROSSES and not kwargs and large(max(map(np.size, inputs))):
        return _crossed(ufunc.__name__, *inputs)
    arrays = [_as_objects(value) for value in inputs]
    out = tuple(map(_plain, kwargs.pop("out", ())))
    if method == "reduce" and ufunc in _REDUCED:
        return _best(arrays[0], kwargs.get("axis", 0), kwargs.get("keepdims"), largest=_REDUCED[ufunc])
    if method == "accumulate" and ufunc in _REDUCED:
        return _running(arrays[0], kwargs.get("axis", 0), largest=_REDUCED[ufunc])
    if method == "__call__" and ufunc in KNOWN and not kwargs:
        found = _computed(KNOWN[ufunc], arrays)
        if not out:
            return _lazy(found) if found.ndim else found[()]
        out[0][...] = found
        return _lazy(out[0])
    try:
        return _lazy(getattr(ufunc, method)(*arrays, **kwargs, **({"out": out} if out else {})))
    except TypeError:
        raise refusal(f"np.{ufunc.__name__} needs the value of a random number") from None


_CROSSES = {"less": False, "less_equal": False, "greater": True, "greater_equal": True}
"""Comparisons, and whether they are true of a number that is above."""


def _crossed(name: str, left: Any, right: Any) -> Any:
    """Compare one random number with very many bounds: one draw decides all answers."""
    above = _CROSSES[name] == isinstance(left, LazyFloat)
    value, bounds = (left, right) if isinstance(left, LazyFloat) else (right, left)
    together = isinstance(value, LazyFloat) and goes_in_arrays(value.unknown)
    if not together or np.asarray(bounds).dtype.kind == "O" or np.ndim(bounds) != 1:
        raise refusal("very many random numbers are compared one by one")
    found = asked(crossing, [value.unknown], bounds[None], bounds.shape, above=above)
    return found.elements().astype(bool)


def _computed(name: str, arrays: Sequence[Any]) -> Any:
    arrays = np.broadcast_arrays(*arrays)
    found = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(found.shape):
        found[index] = of_operands(name, *(array[index] for array in arrays))
    return found.astype(bool) if name in YES_OR_NO else found


def _entries(row: Sequence[Any]) -> list[Any]:
    return [opened(entry) if isinstance(entry, LazyFloat) else float(entry) for entry in row]


def _winner(row: Sequence[Any], *, largest: bool) -> int:
    """Return the index of the largest or smallest of numbers and random numbers that race for it."""
    if any(isinstance(entry, LazyFloat) for entry in row):
        return int(asked(winner, _entries(row), largest=largest))
    entries = [float(entry) for entry in row]
    return int(np.argmax(entries) if largest else np.argmin(entries))


def _as_objects(value: Any, make: Any = np.asarray) -> Any:
    return make(_plain(value), dtype=object)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, LazyArray) else value


def _lazy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(LazyArray if value.dtype == object else np.ndarray)
    return type(value)(map(_lazy, value)) if type(value) in {list, tuple} else value


def _rows(array: Any, axis: SupportsIndex | None) -> Any:
    found = _plain(np.asanyarray(array))
    return found.reshape(-1) if axis is None else np.moveaxis(found, axis, -1)


def _extreme(array: Any, axis: SupportsIndex | None, out: Any, keepdims: Any, *, largest: bool) -> Any:
    found = _plain(np.asanyarray(array))
    if found.dtype != object or out is not None:
        return (np.argmax if largest else np.argmin)(found, axis, out, keepdims=keepdims is True)
    rows = _rows(found, axis)
    winners = np.empty(rows.shape[:-1], dtype=np.int64)
    for index in np.ndindex(*winners.shape):
        winners[index] = _winner(rows[index], largest=largest)
    return _kept(winners, found, axis, keepdims)


def _kept(found: Any, array: Any, axis: Any, keepdims: Any) -> Any:
    if keepdims is True:
        return found.reshape((1,) * array.ndim) if axis is None else np.expand_dims(found, axis)
    return found[()]


def _best(array: Any, axis: SupportsIndex | None, keepdims: Any, *, largest: bool, **more: Any) -> Any:
    """Return the largest or smallest numbers, which are random."""
    more = {name: value for name, value in more.items() if value not in (None, np._NoValue)}  # noqa: SLF001
    if more:
        raise refusal(f"the largest of random numbers is asked for with {', '.join(more)}")
    rows = _rows(array, axis)
    found = np.empty(rows.shape[:-1], dtype=object)
    for index in np.ndindex(*found.shape):
        found[index] = wrapped(asked(largest_of, tuple(_entries(rows[index])), largest=largest))
    return _lazy(_kept(found, array, axis, keepdims))


def _running(array: Any, axis: Any, *, largest: bool) -> Any:
    rows = _rows(array, axis)
    found = np.empty(rows.shape, dtype=object)
    for *row, place in np.ndindex(*found.shape):
        entries = _entries(rows[tuple(row)][: place + 1])
        found[(*row, place)] = wrapped(asked(largest_of, tuple(entries), largest=largest))
    return _lazy(np.moveaxis(found, -1, axis))


def _argsorted(array: Any, axis: Any = -1, *, first: int | None = None) -> Any:
    """Return the order of the numbers along an axis, no further than it is asked for."""
    rows = _rows(array, axis)
    found = np.empty(rows.shape, dtype=np.int64)
    for index in np.ndindex(*rows.shape[:-1]):
        entries, length = _entries(rows[index]), rows.shape[-1]
        number = length if first is None else first
        order = [int(asked(ranked, entries, rank, largest=False)) for rank in range(min(number, length))]
        found[index] = [*order, *(at for at in range(length) if at not in order)]
    return found if axis is None else np.moveaxis(found, -1, axis)


def _partitioned(a: Any, kth: Any, axis: Any = -1, **_: Any) -> Any:
    places = [place % np.shape(a)[axis] for place in np.atleast_1d(kth).tolist()]
    return _argsorted(a, axis, first=max(places) + 1)


def _searched(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    bounds = np.asarray(a)[... if sorter is None else sorter].tolist()
    places = [_looked_up(bounds, value, side) for value in _as_objects(v).flat]
    return np.array(places, dtype=np.int64).reshape(np.shape(v))[()]


def _looked_up(bounds: Sequence[Any], value: Any, side: str) -> int:
    """Return the place of a number or random number in sorted numbers."""
    if any(isinstance(bound, LazyFloat) for bound in bounds):
        raise refusal("a number is looked up among random ones")
    if isinstance(value, LazyFloat) and large(len(bounds)) and goes_in_arrays(value.unknown):
        return int(asked(lookup, value.unknown, bounds).value())
    if isinstance(value, LazyFloat):
        return int(asked(value.unknown.interval_of, bounds, or_equal=side == "right"))
    return int(np.searchsorted(bounds, value, side))  # type: ignore[call-overload]  # "left" or "right"


_SEARCHSORTED: Any = np.ndarray.searchsorted


def _searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return what ``ndarray.searchsorted`` does."""
    random = isinstance(v, LazyFloat) or (isinstance(v, np.ndarray) and v.dtype.kind == "O")
    return (_searched if random and large(self.size) else _SEARCHSORTED)(self, v, side, sorter)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.argmax: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=True),
    np.argmin: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=False),
    np.argsort: lambda a, axis=-1, *args, **kwargs: _argsorted(a, axis),
    np.argpartition: _partitioned,
    np.searchsorted: _searched,
    np.digitize: lambda x, bins, right=False: _searched(bins, x, "left" if right else "right"),
}


# Arrays that are made of lazy numbers


def _making(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return what makes an array as ``real`` does, and a lazy one of lazy numbers, whatever dtype is asked for."""

    def make(values: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(values, Iterator) and real is _FROM_ITERATOR:
            values = list(values)
        if not holds_lazy(values):
            return real(values, *args, **kwargs)
        return _as_objects(values).view(LazyArray)

    return make


_LAZY, _CONTAINERS = frozenset({LazyFloat, LazyInt, LazyArray}), frozenset({list, tuple})
_EITHER = _LAZY | _CONTAINERS


def holds_lazy(values: Any) -> bool:
    """Return whether there is a lazy number in a value, or in what it contains."""
    if type(values) not in _CONTAINERS:
        return type(values) in _LAZY
    return not _EITHER.isdisjoint(map(type, values)) and any(map(holds_lazy, values))


_FROM_ITERATOR = np.fromiter
MADE = {name: _making(getattr(np, name)) for name in ("array", "asarray", "fromiter")}
"""What stands for the functions that make arrays of numbers, by their names in NumPy."""


@contextmanager
def lookups_at_large() -> Iterator[None]:
    """Look a random number up among very many bounds at once inside the block: NumPy would halve them again and again.

    Nothing is changed where a real vocabulary is not in use.
    """
    with methods_replaced(np.ndarray, {"searchsorted": _searchsorted}) if at_large_now() else nullcontext():
        yield
