"""Random numbers that nobody has valued as Python and NumPy know numbers: ``LazyFloat`` and arrays of it.

Both dispatch to ``algebra`` element by element. What is not known there asks for the value, and is refused by the name
of the operation and the line of the foreign code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np

from specverify.intercept.native_types import methods_replaced, once, replaced
from specverify.intercept.unknowns.algebra import ALGEBRA, YES_OR_NO, applied
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.lookups import crossing, lookup
from specverify.intercept.unknowns.races import winner
from specverify.intercept.unknowns.uniform import NeedsValue, refusal
from specverify.intercept.unknowns.wide import at_large_now, large
from specverify.laws import rounding


class LazyFloat:
    """A random number that has no value, only answers to comparisons."""

    __slots__ = ("continuous",)

    def __init__(self, continuous: Continuous) -> None:
        """Stand for ``continuous``."""
        self.continuous = continuous

    __class__: Any = property(lambda self: float)
    """It says that it is a float, to those who ask before they compare."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a function of NumPy to it, and to the elements of the other operands."""
        return _on_elements(ufunc, method, inputs, kwargs)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Leave it to the block, which takes it for a tensor of one number."""
        return NotImplemented

    def __repr__(self) -> str:
        return f"LazyFloat{tuple(tuple(step) for step in self.continuous.steps)}"


def _operation(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    """Return the method of an operation of one or two operands."""

    def method(self: LazyFloat, *others: Any) -> Any:
        if not all(isinstance(other, LazyFloat | Real) for other in others):
            return NotImplemented
        if name in YES_OR_NO:
            rounding.saw(getattr(others[0], "dtype", None))
        return _of_operands(name, *((*others, self) if swapped else (self, *others)))

    return method


def _refusing(name: str) -> Callable[..., Any]:
    hint = "; math functions that were imported by name ask for it too" if name == "__float__" else ""

    def method(self: LazyFloat, *args: Any) -> Any:
        raise refusal(f"{name} needs the value of a random number, which has none{hint}")

    return method


_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power"}
_UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute"}
_RELATIONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
              "ne": "not_equal"}  # fmt: skip
for _method, _name in (_BINARY | _UNARY | _RELATIONS).items():
    setattr(LazyFloat, f"__{_method}__", _operation(_name))
for _method, _name in _BINARY.items():
    setattr(LazyFloat, f"__r{_method}__", _operation(_name, swapped=True))
for _method in ("float", "int", "index", "bool", "hash", "round", "floor", "ceil", "trunc", "str", "complex", "mod",
                "rmod", "floordiv", "rfloordiv", "divmod", "rdivmod", "format"):  # fmt: skip
    setattr(LazyFloat, f"__{_method}__", _refusing(f"__{_method}__"))


def _of_operands(name: str, *operands: Any) -> Any:
    """Return what an operation gives of numbers and random numbers."""
    found = _asked(applied, name, *map(_opened, operands))
    return LazyFloat(found) if isinstance(found, Continuous) else found


def _opened(value: Any) -> Any:
    return value.continuous if isinstance(value, LazyFloat) else value


def _asked(question: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Put a question, and name the foreign line if it is refused."""
    try:
        return question(*args, **kwargs)
    except NeedsValue as refused:
        raise refusal(str(refused)) from None


# The functions of ``math``


def _of_math(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    known = {"pow": "power"}.get(name, name)

    def function(*args: Any) -> Any:
        if not any(isinstance(arg, LazyFloat) for arg in args):
            return real(*args)
        if name == "log" and len(args) == 2:
            return _of_operands("log", args[0]) / real(args[1])
        return _of_operands(known, *args)

    return function


_MATH = {
    name: _of_math(name, getattr(math, name))
    for name in (
        "log",
        "log1p",
        "log2",
        "log10",
        "exp",
        "exp2",
        "expm1",
        "sqrt",
        "pow",
        "fabs",
        "isnan",
        "isinf",
        "isfinite",
    )
    if hasattr(math, name)
}


@once
@contextmanager
def math_answers() -> Iterator[None]:
    """Let the functions of ``math`` know random numbers inside the block, where they are called by ``math.log``."""
    with replaced(math, _MATH):
        yield


@contextmanager
def lookups_at_large() -> Iterator[None]:
    """Look a random number up among very many bounds at once inside the block: NumPy would halve them again and again.

    Nothing is changed where a real vocabulary is not in use.
    """
    with methods_replaced(np.ndarray, {"searchsorted": _searchsorted}) if at_large_now() else nullcontext():
        yield


# Arrays


class LazyArray(np.ndarray[Any, Any]):
    """An object array of ``LazyFloat`` and numbers; what is computed of it without them is an ordinary array."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a function of NumPy to every element."""
        return _on_elements(ufunc, method, inputs, kwargs)

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


KNOWN = {getattr(np, name): name for name in ALGEBRA} | {vars(np)["_core"].umath.clip: "clip"}  # what np.clip calls


def _on_elements(ufunc: Any, method: str, inputs: Any, kwargs: Any) -> Any:
    """Apply a function to elements: one of ``ALGEBRA`` by that, another by their methods."""
    for value in inputs:
        rounding.saw(getattr(value, "dtype", None))
    if method == "__call__" and ufunc.__name__ in _CROSSES and not kwargs and large(max(map(np.size, inputs))):
        return _crossed(ufunc.__name__, *inputs)
    arrays = [np.asarray(_plain(value), dtype=object) for value in inputs]
    out = tuple(map(_plain, kwargs.pop("out", ())))
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
    if not isinstance(value, LazyFloat) or np.asarray(bounds).dtype.kind == "O" or np.ndim(bounds) != 1:
        raise refusal("very many random numbers are compared one by one")
    found = _asked(crossing, [value.continuous], bounds[None], bounds.shape, above=above)
    return found.elements().astype(bool)


def _computed(name: str, arrays: Sequence[Any]) -> Any:
    arrays = np.broadcast_arrays(*arrays)
    found = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(found.shape):
        found[index] = _of_operands(name, *(array[index] for array in arrays))
    return found.astype(bool) if name in YES_OR_NO else found


def _winner(row: Sequence[Any], *, largest: bool) -> int:
    """Return the index of the largest or smallest of numbers and random numbers that race for it."""
    entries: list[Any] = [entry.continuous if isinstance(entry, LazyFloat) else float(entry) for entry in row]
    if any(isinstance(entry, Continuous) for entry in entries):
        return int(_asked(winner, entries, largest=largest))
    return int(np.argmax(entries) if largest else np.argmin(entries))


def _looked_up(bounds: Sequence[Any], value: Any, side: str) -> int:
    """Return the place of a number or random number in sorted numbers."""
    if any(isinstance(bound, LazyFloat) for bound in bounds):
        raise refusal("a number is looked up among random ones")
    if isinstance(value, LazyFloat) and large(len(bounds)):
        return int(_asked(lookup, value.continuous, bounds).value())
    if isinstance(value, LazyFloat):
        return int(_asked(value.continuous.interval_of, bounds))
    return int(np.searchsorted(bounds, value, side))  # type: ignore[call-overload]  # "left" or "right"


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
        winners[index] = _winner(rows[index], largest=largest)
    if keepdims is True:
        return winners.reshape((1,) * found.ndim) if axis is None else np.expand_dims(winners, axis)
    return winners[()]


def _searched(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    bounds = np.asarray(a)[... if sorter is None else sorter].tolist()
    places = [_looked_up(bounds, value, side) for value in np.asarray(v, dtype=object).flat]
    return np.array(places, dtype=np.int64).reshape(np.shape(v))[()]


_SEARCHSORTED: Any = np.ndarray.searchsorted


def _searchsorted(self: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Return what ``ndarray.searchsorted`` does."""
    random = isinstance(v, LazyFloat) or (isinstance(v, np.ndarray) and v.dtype.kind == "O")
    if random and large(self.size):
        return _searched(self, v, side, sorter)
    return _SEARCHSORTED(self, v, side, sorter)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.argmax: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=True),
    np.argmin: lambda a, axis=None, out=None, *, keepdims=False: _extreme(a, axis, out, keepdims, largest=False),
    np.searchsorted: _searched,
    np.digitize: lambda x, bins, right=False: _searched(bins, x, "left" if right else "right"),
}
