"""NumPy arrays with elements that nobody has valued, and the functions that compare such elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np

from specverify import rounding
from specverify.intercept.scalars import LazyFloat, looked_up, refusal, winner


class LazyArray(np.ndarray[Any, Any]):
    """An object array of ``LazyFloat`` and numbers; what is computed of it without them is an ordinary array."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply the function to every element, numbers as NumPy would, random numbers by their own methods."""
        plain = [_plain(value) for value in inputs]
        for value in plain:
            rounding.saw(getattr(value, "dtype", None))
        if "out" in kwargs:
            kwargs["out"] = tuple(_plain(value) for value in kwargs["out"])
        if method == "__call__" and ufunc.nin == 1 and ufunc not in {np.negative, np.positive} and "out" not in kwargs:
            each = np.frompyfunc(lambda e: ufunc(e if isinstance(e, LazyFloat) else np.float64(e)), 1, 1)
            try:
                return _lazy(each(*plain))
            except TypeError:
                raise refusal(f"np.{ufunc.__name__} needs the value of a random number") from None
        return _lazy(getattr(ufunc, method)(*plain, **kwargs))

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

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return it as it is for another floating type: it has no digits to lose."""
        return self.copy() if np.issubdtype(dtype, np.floating) else super().astype(dtype, *args, **kwargs)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, LazyArray) else value


def _lazy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(LazyArray if value.dtype == object else np.ndarray)
    return type(value)(map(_lazy, value)) if type(value) in {list, tuple} else value


def _extreme(array: Any, axis: SupportsIndex | None, out: Any, keepdims: Any, *, largest: bool) -> Any:
    found = _plain(np.asanyarray(array))
    if found.dtype != object or out is not None:
        return (np.argmax if largest else np.argmin)(found, axis, out, keepdims=keepdims is True)
    rows = found.reshape(-1) if axis is None else np.moveaxis(found, axis, -1)
    winners = np.empty(rows.shape[:-1], dtype=np.int64)
    for index in np.ndindex(*winners.shape):
        winners[index] = winner(rows[index], largest=largest)
    if keepdims is True:
        return winners.reshape((1,) * found.ndim) if axis is None else np.expand_dims(winners, axis)
    return winners[()]


def _searched(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    bounds = np.asarray(a)[... if sorter is None else sorter].tolist()
    places = [looked_up(bounds, value, side) for value in np.asarray(v, dtype=object).flat]
    return np.array(places, dtype=np.int64).reshape(np.shape(v))[()]


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.argmax: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=True),
    np.argmin: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=False),
    np.searchsorted: _searched,
    np.digitize: lambda x, bins, right=False: _searched(bins, x, "left" if right else "right"),
}
