"""Arrays of NumPy that hold random numbers nobody has valued.

They dispatch to ``algebra``, ``comparisons`` and ``races`` element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Integral
from typing import Any

import numpy as np

from specverify.intercept.caller import caller
from specverify.intercept.native_types import methods_replaced
from specverify.intercept.refusals import Declined
from specverify.intercept.unknowns.algebra import narrowed
from specverify.intercept.unknowns.comparisons import COMPARISONS
from specverify.intercept.unknowns.lazy_numbers import (
    LazyFloat,
    asked,
    meets,
    of_operands,
    opened,
    refusing,
    whole_part,
    wrapped,
)
from specverify.intercept.unknowns.lazy_orders import (
    argsorted,
    as_objects,
    best,
    digitized,
    extreme,
    in_order,
    partitioned,
    plain,
    running,
    searched,
)
from specverify.intercept.unknowns.lookups import crossing, goes_in_arrays
from specverify.intercept.unknowns.primitives import PRIMITIVES
from specverify.intercept.unknowns.uniform import NeedsValue, refusal
from specverify.intercept.unknowns.wide import at_large_now, large
from specverify.laws import rounding


class LazyArray(np.ndarray[Any, Any]):
    """An object array of lazy numbers and numbers; what is computed of it without them is an ordinary array."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a function of NumPy to every element; arrays of another kind know how they are written to."""
        if any(type(target) not in {np.ndarray, LazyArray} for target in kwargs.get("out", ())):
            return Declined("an array of another kind is written to").to_python()
        return on_elements(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Answer the functions that would compare elements with each other; run the others."""
        try:
            if func in _FUNCTIONS:
                return _FUNCTIONS[func](*args, **kwargs)
            return _lazy(super().__array_function__(func, types, args, kwargs))
        except NeedsValue as refused:
            raise refused.during(f"np.{func.__name__}", caller()) from None

    def argmax(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the largest, which random numbers race for."""
        return extreme(self, axis, out, keepdims, largest=True)

    def argmin(self, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        """Return the index of the smallest, which random numbers race for."""
        return extreme(self, axis, out, keepdims, largest=False)

    def max(self, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        """Return the largest, a random number."""
        return _lazy(best(self, axis, keepdims, largest=True, out=out, **more))

    def min(self, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        """Return the smallest, a random number."""
        return _lazy(best(self, axis, keepdims, largest=False, out=out, **more))

    def argsort(self, axis: Any = -1, *_: Any, **__: Any) -> Any:
        """Return the order of the numbers, as a race has it."""
        return argsorted(self, axis)

    def sort(self, axis: Any = -1, *_: Any, **__: Any) -> None:
        """Put the numbers in order."""
        self[...] = in_order(self, axis)

    def partition(self, _kth: Any, axis: Any = -1, *_: Any, **__: Any) -> None:
        """Put the numbers in order."""
        self.sort(axis)

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        """Return it for another floating type, rounded to the digits that one of 16 bits has; whole parts are drawn."""
        if np.issubdtype(dtype, np.floating):
            return narrowed_elements(self, np.dtype(dtype))
        if np.issubdtype(dtype, np.integer):
            parts = [whole_part("trunc", each) if isinstance(each, LazyFloat) else each for each in self.flat]
            of_whole = all(isinstance(each, Integral) for each in self.flat)
            with np.errstate(invalid="ignore"):  # what is too large for the type becomes what NumPy makes of it
                return np.array(parts, dtype=np.int64 if of_whole else np.float64).astype(dtype).reshape(self.shape)
        return super().astype(dtype, *args, **kwargs)


for _method in (
    "tobytes",
    "tofile",
    "dump",
    "dumps",
    "getfield",
    "byteswap",
    "__bytes__",
    "__reduce__",
    "__reduce_ex__",
):
    setattr(LazyArray, _method, refusing(_method))
for _attribute in ("data", "ctypes", "__array_interface__"):
    setattr(LazyArray, _attribute, property(refusing(_attribute)))


def _of_float(self: LazyFloat, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Apply a function of NumPy to a number, and to the elements of the other operands; their own arrays know how."""
    if any(
        isinstance(value, np.ndarray) and type(value) is not np.ndarray for value in (*inputs, *kwargs.get("out", ()))
    ):
        return Declined("an array of another kind is an operand").to_python()
    meets(*inputs)
    return on_elements(ufunc, method, inputs, kwargs)


LazyFloat.__array_ufunc__ = _of_float  # type: ignore[attr-defined]  # arrays are made of numbers, not numbers of arrays

_NAMES = {name: getattr(np, name) for name in PRIMITIVES if hasattr(np, name)}
KNOWN = {ufunc: name for name, ufunc in _NAMES.items()} | {vars(np)["_core"].umath.clip: "clip"}  # what np.clip calls
_OF_SCIPY = {"expit": "sigmoid", "logit": "logit"}
_REDUCED = {np.maximum: True, np.minimum: False, np.fmax: True, np.fmin: False}


def on_elements(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Apply a function to elements: one that is known by that, another by their methods."""
    try:
        return _on_elements(ufunc, method, inputs, kwargs)
    except NeedsValue as refused:
        raise refused.during(f"np.{ufunc.__name__}", caller()) from None


def _on_elements(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    for value in inputs:
        rounding.saw(getattr(value, "dtype", None))
    if method == "__call__" and ufunc.__name__ in _CROSSES and not kwargs and large(max(map(np.size, inputs))):
        return _crossed(ufunc.__name__, *inputs)
    places = {"reduceat": 1, "at": 1}.get(method)
    arrays = [value if number == places else as_objects(value) for number, value in enumerate(inputs)]
    if method == "at" and not isinstance(inputs[0], LazyArray):
        raise refusal(
            "write-not-followed",
            f"np.{ufunc.__name__}.at writes random numbers into an array that was made without any",
        )
    out = tuple(map(plain, kwargs.pop("out", ())))
    if kwargs.get("dtype") is not None and np.issubdtype(kwargs["dtype"], np.floating):
        _check_digits(ufunc, kwargs.pop("dtype"))
    if method in _ORDERED and ufunc in _REDUCED:
        return _lazy(_ORDERED[method](arrays[0], kwargs, largest=_REDUCED[ufunc]))
    if method == "__call__" and ufunc in _PAIRS and not (out or kwargs):
        return tuple(_number_or_lazy(found) for found in _PAIRS[ufunc](*arrays))
    name = KNOWN.get(ufunc) or _OF_SCIPY.get(ufunc.__name__)
    if method == "__call__" and name and kwargs.keys() <= ({"where"} if out else set()):
        found = _computed(name, [*arrays, kwargs.get("where", True)])
        if out:
            np.copyto(out[0], found, **kwargs, casting="unsafe")
        return _lazy(out[0]) if out else _number_or_lazy(found)
    try:
        return _lazy(getattr(ufunc, method)(*arrays, **kwargs, **({"out": out} if out else {})))
    except TypeError:
        raise refusal("value-needed", "it needs the value of a random number") from None


def _check_digits(ufunc: Any, dtype: Any) -> None:
    if np.dtype(dtype) == np.float16:
        raise refusal(
            "few-bits", f"np.{ufunc.__name__} rounds random numbers to float16 on the way: convert what it gives"
        )


_ORDERED: dict[str, Callable[..., Any]] = {
    "reduce": lambda array, more, largest: best(array, more.get("axis", 0), more.get("keepdims"), largest=largest),
    "accumulate": lambda array, more, largest: running(array, more.get("axis", 0), largest=largest),
}
_CROSSES = {"less": False, "less_equal": False, "greater": True, "greater_equal": True}
"""Comparisons, and whether they are true of a number that is above."""


def _crossed(name: str, left: Any, right: Any) -> Any:
    """Compare one random number with very many bounds: one draw decides all answers."""
    above = _CROSSES[name] == isinstance(left, LazyFloat)
    value, bounds = (left, right) if isinstance(left, LazyFloat) else (right, left)
    together = isinstance(value, LazyFloat) and goes_in_arrays(value.unknown)
    if not together or np.asarray(bounds).dtype.kind == "O" or np.ndim(bounds) != 1:
        raise refusal("arrays-not-followed", "very many random numbers are compared one by one")
    found = asked(crossing, [value.unknown], bounds[None], bounds.shape, above=above)
    return found.elements().astype(bool)


def _computed(name: str, arrays: Sequence[Any]) -> Any:
    """Return what an operation gives of each element; the last array says where it is asked for."""
    *operands, where = np.broadcast_arrays(*arrays)
    found = np.empty(where.shape, dtype=object)
    for index in zip(*np.nonzero(where), strict=True) if where.ndim else [()] * bool(where):
        found[index] = of_operands(name, *(array[index] for array in operands))
    return found.astype(bool) if name in COMPARISONS else found


def narrowed_elements(elements: Any, dtype: np.dtype[Any]) -> Any:
    """Return a copy of elements, numbers of random ones as a floating type has them."""
    found = np.array(elements, dtype=object, copy=True)
    for index in np.ndindex(found.shape) if dtype == np.float16 else ():
        found[index] = wrapped(asked(narrowed, opened(found[index]), dtype.name))
    rounding.saw(dtype)
    return found.view(type(elements)) if isinstance(elements, np.ndarray) else found


def _parts(value: Any) -> tuple[Any, Any]:
    whole = _computed("trunc", [value, True])
    return _computed("subtract", [value, whole, True]), whole


_PAIRS: dict[Any, Callable[..., tuple[Any, Any]]] = {
    np.divmod: lambda *pair: (_computed("floor_divide", [*pair, True]), _computed("remainder", [*pair, True])),
    np.modf: _parts,
}
"""Functions that give two arrays."""


def _number_or_lazy(found: Any) -> Any:
    return _lazy(found) if found.ndim else found[()]


def _lazy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(LazyArray if value.dtype == object else np.ndarray)
    return type(value)(map(_lazy, value)) if type(value) in {list, tuple} else value


_SEARCHSORTED: Any = np.ndarray.searchsorted


def _searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return what ``ndarray.searchsorted`` does."""
    random = isinstance(v, LazyFloat) or (isinstance(v, np.ndarray) and v.dtype.kind == "O")
    return (searched if random and large(self.size) else _SEARCHSORTED)(self, v, side, sorter)


def _without_nan(x: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array with other numbers for those that are none; random ones stay."""
    found = plain(x).copy()
    for index in np.ndindex(*found.shape):
        if not isinstance(found[index], LazyFloat):
            found[index] = np.nan_to_num(float(found[index]), *args, **kwargs)
    return _lazy(found)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.argmax: lambda a, axis=None, out=None, *, keepdims=False: extreme(a, axis, out, keepdims, largest=True),
    np.argmin: lambda a, axis=None, out=None, *, keepdims=False: extreme(a, axis, out, keepdims, largest=False),
    np.sort: lambda a, *args, **kwargs: _lazy(in_order(a, *args, **kwargs)),
    np.partition: lambda a, kth, axis=-1, *args, **kwargs: _lazy(in_order(a, axis)),
    np.argsort: lambda a, axis=-1, *args, **kwargs: argsorted(a, axis),
    np.argpartition: partitioned,
    np.searchsorted: searched,
    np.digitize: digitized,
    np.nan_to_num: _without_nan,
}


@contextmanager
def lookups_at_large() -> Iterator[None]:
    """Look a random number up among very many bounds at once inside the block: NumPy would halve them again and again.

    Nothing is changed where a real vocabulary is not in use.
    """
    with methods_replaced(np.ndarray, {"searchsorted": _searchsorted}) if at_large_now() else nullcontext():
        yield
