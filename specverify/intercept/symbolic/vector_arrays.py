"""Very many random numbers as an array of NumPy.

Its memory holds one object that refuses everything, as often as there are elements: what gets at it without being known
here is refused, and never computes with anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.symbolic.algebra import check_not_equal
from specverify.intercept.symbolic.arrays import KNOWN, SymbolicArray
from specverify.intercept.symbolic.continuous import Continuous
from specverify.intercept.symbolic.deferred import known
from specverify.intercept.symbolic.elementwise import applied_to_many
from specverify.intercept.symbolic.joined import Symbolic
from specverify.intercept.symbolic.large import MANY
from specverify.intercept.symbolic.numbers import SymbolicFloat, asked
from specverify.intercept.symbolic.uniform import refusal
from specverify.intercept.symbolic.vector_races import Race
from specverify.intercept.symbolic.vectors import Many
from specverify.laws import rounding


class _Unreachable(SymbolicFloat):
    """What stands in the memory of an array of very many random numbers."""

    __slots__ = ()

    @property
    def unknown(self) -> Symbolic:  # type: ignore[override]  # it has none
        raise refusal("arrays-not-followed", "many random numbers are taken out of an array in a way that is not known")


_MEMORY = np.empty((), dtype=object)
_MEMORY[()] = _Unreachable.__new__(_Unreachable)


class VectorArray(SymbolicArray):
    """An array whose elements are those of ``many``."""

    many: Many | None = None
    shared = False
    """Whether there is another array that would see what is written to this one."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a function of NumPy to all elements together, or to each where that is not known."""
        for value in inputs:
            rounding.saw(getattr(value, "dtype", None))
        single = any(isinstance(value, SymbolicFloat) for value in inputs)
        out = kwargs.pop("out", (None,))
        if method == "__call__" and ufunc in KNOWN and not kwargs and not single:
            with suppress(RuleDeclined, TypeError):
                result = applied_to_many(KNOWN[ufunc], *(getattr(value, "many", value) for value in inputs))
                return as_array(result) if out[0] is None else _written(out[0], result)
        if out[0] is not None:
            raise refusal("arrays-not-followed", "many random numbers are changed in place in a way that is not known")
        return SymbolicArray.__array_ufunc__(self, ufunc, method, *map(taken_out, inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Answer the functions that are methods as well; run the others on the elements."""
        if func in _METHODS and args and isinstance(args[0], VectorArray):
            return _METHODS[func](*args, **kwargs)
        given = tuple(taken_out(value) for value in args)
        return getattr(SymbolicArray, "__array_function__")(given[0], func, types, given, kwargs)  # noqa: B009 - not of self

    def __getitem__(self, index: Any) -> Any:
        return self._taken(lambda array: array[index])

    def _taken(self, take: Callable[[Any], Any]) -> Any:
        """Return a view or a copy of the elements: whichever it is, neither is written to from now on."""
        result = as_array(_of(self).taken(take))
        self.shared = True
        if isinstance(result, VectorArray):
            result.shared = True
        return result

    @property
    def T(self) -> Any:  # noqa: N802 - as NumPy calls it
        """The elements with the axes turned round."""
        return self.transpose()

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Return the same elements in another shape."""
        return self._taken(lambda array: array.reshape(*shape, **kwargs))

    def ravel(self, *_: Any, **__: Any) -> Any:
        """Return the elements in one row."""
        return self._taken(lambda array: array.ravel())

    flatten = ravel

    def transpose(self, *axes: Any) -> Any:
        """Return the elements with other axes."""
        return self._taken(lambda array: array.transpose(*axes))

    def copy(self, *_: Any, **__: Any) -> Any:
        """Return the same elements."""
        return as_array(_of(self))

    def astype(self, dtype: Any, *_: Any, **__: Any) -> Any:
        """Return the same elements for another floating type."""
        if np.issubdtype(dtype, np.floating):
            asked(check_not_equal, np.dtype(dtype).name)
            return as_array(_of(self))
        raise refusal("arrays-not-followed", "random numbers are converted to something that is no float")

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the place of the largest, drawn."""
        return self._extreme(axis, out, keepdims, largest=True)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the place of the smallest, drawn."""
        return self._extreme(axis, out, keepdims, largest=False)

    def max(self, *args: Any, **kwargs: Any) -> Any:
        """Return the largest, a random number."""
        return taken_out(self).max(*args, **kwargs)

    def min(self, *args: Any, **kwargs: Any) -> Any:
        """Return the smallest, a random number."""
        return taken_out(self).min(*args, **kwargs)

    def argsort(self, *args: Any, **kwargs: Any) -> Any:
        """Return the order of the numbers, as a race has it."""
        return taken_out(self).argsort(*args, **kwargs)

    def _extreme(self, axis: Any, out: Any, keepdims: Any, *, largest: bool) -> Any:
        if out is not None:
            raise refusal(
                "arrays-not-followed", "the place of the largest of many random numbers is written into an array"
            )
        many = _of(self)
        rows = many.taken(lambda array: array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, -1))
        result = np.empty(rows.shape[:-1], dtype=np.int64)
        for place in np.ndindex(*result.shape):
            row = rows.taken(lambda array, place=place: array[place])  # type: ignore[misc]
            result[place] = known(Race(row, largest=largest).winner())
        if keepdims is True:
            return result.reshape((1,) * self.ndim) if axis is None else np.expand_dims(result, axis)
        return result[0] if axis is None else result[()]


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: Any, *_: Any, **__: Any) -> Any:
        raise refusal("arrays-not-followed", f"many random numbers are changed in place by {name}")

    return method


for _name in ("__setitem__", "sort", "partition", "fill", "put", "resize"):
    setattr(VectorArray, _name, _refusing(_name))

_METHODS: dict[Any, Callable[..., Any]] = {
    np.argmax: VectorArray.argmax,
    np.argmin: VectorArray.argmin,
    np.reshape: VectorArray.reshape,
    np.ravel: VectorArray.ravel,
    np.transpose: VectorArray.transpose,
    np.copy: VectorArray.copy,
}


def as_array(many: Many) -> Any:
    """Return random numbers as NumPy knows them: very many, a few, or one."""
    if not many.shape:
        result = many.element(0)
        return SymbolicFloat(result) if isinstance(result, Continuous) else np.float64(result)
    if many.ids.size <= MANY:
        return _elements(many)
    made: Any = np.broadcast_to(_MEMORY, many.shape).view(VectorArray)
    made.many = many
    return made


def taken_out(value: Any) -> Any:
    """Return the elements of an array of very many, each by itself."""
    return _elements(_of(value)) if isinstance(value, VectorArray) else value


def _elements(many: Many) -> SymbolicArray:
    result = many.elements()
    made = np.empty(result.shape, dtype=object)
    made.reshape(-1)[:] = [SymbolicFloat(each) if isinstance(each, Continuous) else each for each in result.flat]
    return made.view(SymbolicArray)


def _written(out: Any, many: Many) -> Any:
    """Let other numbers stand in an array, as an operation in place does."""
    if not isinstance(out, VectorArray) or out.shared or out.shape != many.shape:
        raise refusal("arrays-not-followed", "many random numbers are written into an array that others see")
    out.many = many
    return out


def _of(array: VectorArray) -> Many:
    if array.many is None:
        raise refusal("arrays-not-followed", "many random numbers are taken out of an array in a way that is not known")
    return array.many
