"""Orders of arrays that hold random numbers, and look-ups in arrays: which is the largest, which is next, where one is.

Arrays come in and go out as arrays of objects: numbers, and random numbers that nobody has valued.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from specverify.intercept.unknowns.continuous import at_rank, largest_of
from specverify.intercept.unknowns.lazy_numbers import LazyFloat, asked, opened, wrapped
from specverify.intercept.unknowns.lookups import goes_in_arrays, lookup
from specverify.intercept.unknowns.races import ranked, winner
from specverify.intercept.unknowns.uniform import refusal
from specverify.intercept.unknowns.wide import large


def plain(value: Any) -> Any:
    """Return an array as one of NumPy's own type, another value as it is."""
    return value.view(np.ndarray) if isinstance(value, np.ndarray) else value


def as_objects(value: Any) -> Any:
    """Return an array of objects."""
    return np.asarray(plain(value), dtype=object)


def extreme(array: Any, axis: SupportsIndex | None, out: Any, keepdims: Any, *, largest: bool) -> Any:
    """Return the places of the largest or smallest numbers along an axis."""
    found = plain(np.asanyarray(array))
    if found.dtype != object or out is not None:
        return (np.argmax if largest else np.argmin)(found, axis, out, keepdims=keepdims is True)
    rows = _rows(found, axis)
    winners = np.empty(rows.shape[:-1], dtype=np.int64)
    for index in np.ndindex(*winners.shape):
        winners[index] = _winner(rows[index], largest=largest)
    return _kept(winners, found, axis, keepdims)


def best(array: Any, axis: SupportsIndex | None, keepdims: Any, *, largest: bool, **more: Any) -> Any:
    """Return the largest or smallest numbers, which are random."""
    more = {name: value for name, value in more.items() if value not in (None, np._NoValue)}  # noqa: SLF001
    if more:
        raise refusal("arrays-not-followed", f"the largest of random numbers is asked for with {', '.join(more)}")
    rows = _rows(array, axis)
    found = np.empty(rows.shape[:-1], dtype=object)
    for index in np.ndindex(*found.shape):
        found[index] = wrapped(asked(largest_of, tuple(_entries(rows[index])), largest=largest))
    return _kept(found, array, axis, keepdims)


def running(array: Any, axis: Any, *, largest: bool) -> Any:
    """Return the largest or smallest numbers so far."""
    rows = _rows(array, axis)
    found = np.empty(rows.shape, dtype=object)
    for *row, place in np.ndindex(*found.shape):
        entries = _entries(rows[tuple(row)][: place + 1])
        found[(*row, place)] = wrapped(asked(largest_of, tuple(entries), largest=largest))
    return np.moveaxis(found, -1, axis)


def argsorted(array: Any, axis: Any = -1, *, first: int | None = None) -> Any:
    """Return the order of the numbers along an axis, no further than it is asked for."""
    rows = _rows(array, axis)
    found = np.empty(rows.shape, dtype=np.int64)
    for index in np.ndindex(*rows.shape[:-1]):
        entries, length = _entries(rows[index]), rows.shape[-1]
        number = length if first is None else first
        order = [int(asked(ranked, entries, rank, largest=False)) for rank in range(min(number, length))]
        found[index] = [*order, *(at for at in range(length) if at not in order)]
    return found if axis is None else np.moveaxis(found, -1, axis)


def in_order(array: Any, axis: Any = -1, *_: Any, **__: Any) -> Any:
    """Return the numbers along an axis from the smallest to the largest: nothing is drawn for that."""
    rows = _rows(array, axis)
    found = np.empty(rows.shape, dtype=object)
    for *row, place in np.ndindex(*found.shape):
        entries = tuple(_entries(rows[tuple(row)]))
        found[(*row, place)] = wrapped(asked(at_rank, entries, place, largest=False))
    return found if axis is None else np.moveaxis(found, -1, axis)


def partitioned(a: Any, kth: Any, axis: Any = -1, **_: Any) -> Any:
    """Return the order of the numbers up to a place, as ``np.argpartition`` may."""
    places = [place % np.shape(a)[axis] for place in np.atleast_1d(kth).tolist()]
    return argsorted(a, axis, first=max(places) + 1)


def searched(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return the places of numbers in sorted ones."""
    bounds = np.asarray(a)[... if sorter is None else sorter].tolist()
    places = [_looked_up(bounds, value, side) for value in as_objects(v).flat]
    return np.array(places, dtype=np.int64).reshape(np.shape(v))[()]


def digitized(x: Any, bins: Any, right: bool = False) -> Any:
    """Return the cells of numbers between sorted bounds, which may be decreasing."""
    edges = np.asarray(bins).tolist()
    if len(edges) > 1 and edges[0] > edges[-1]:
        return len(edges) - searched(edges[::-1], x, "left" if right else "right")
    return searched(edges, x, "left" if right else "right")


def _winner(row: Sequence[Any], *, largest: bool) -> int:
    """Return the index of the largest or smallest of numbers and random numbers that race for it."""
    if any(isinstance(entry, LazyFloat) for entry in row):
        return int(asked(winner, _entries(row), largest=largest))
    entries = [float(entry) for entry in row]
    return int(np.argmax(entries) if largest else np.argmin(entries))


def _entries(row: Sequence[Any]) -> list[Any]:
    return [opened(entry) if isinstance(entry, LazyFloat) else float(entry) for entry in row]


def _rows(array: Any, axis: SupportsIndex | None) -> Any:
    found = plain(np.asanyarray(array))
    return found.reshape(-1) if axis is None else np.moveaxis(found, axis, -1)


def _kept(found: Any, array: Any, axis: Any, keepdims: Any) -> Any:
    if keepdims is True:
        return found.reshape((1,) * array.ndim) if axis is None else np.expand_dims(found, axis)
    return found[()]


def _looked_up(bounds: Sequence[Any], value: Any, side: str) -> int:
    """Return the place of a number or random number in sorted numbers."""
    if any(isinstance(bound, LazyFloat) for bound in bounds):
        raise refusal("arrays-not-followed", "a number is looked up among random ones")
    if isinstance(value, LazyFloat) and large(len(bounds)) and goes_in_arrays(value.unknown):
        return int(asked(lookup, value.unknown, bounds).value())
    if isinstance(value, LazyFloat):
        return int(asked(value.unknown.interval_of, bounds, or_equal=side == "right"))
    return int(np.searchsorted(bounds, value, side))  # type: ignore[call-overload]  # "left" or "right"
