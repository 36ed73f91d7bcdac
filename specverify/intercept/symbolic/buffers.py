"""Float arrays into which foreign code writes random numbers; NumPy functions that accept lists of them.

A NumPy array of floats cannot hold symbolic numbers. So during interception ``np.empty`` and similar functions return a
``Buffer``: an ordinary array, until a random number is written into it. From then on the symbolic numbers are stored in
a separate object array, which all its views share. The memory of the ordinary array then holds values that differ in
every run, so that a replay detects code that reads them.

NumPy dispatches on arrays, but converts a list to an array of objects without dispatching. So during interception each
function receives an array of symbolic numbers in place of a list of them, or of a single one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.ma  # np.unique imports it when it is first called: in a block it would find other functions

from specverify.intercept.caller import is_ours_or_answered
from specverify.intercept.cpython.patches import once
from specverify.intercept.run import PROCESS
from specverify.intercept.symbolic.arrays import ANSWERED, MASK, SymbolicArray, narrowed_elements
from specverify.intercept.symbolic.numbers import SymbolicFloat, SymbolicInt
from specverify.intercept.symbolic.uniform import refusal

# Lazy functions


_NUMBERS, _CONTAINERS = frozenset({SymbolicFloat, SymbolicInt}), frozenset({list, tuple})
_LAZY = _NUMBERS | {SymbolicArray}
_EITHER = _LAZY | _CONTAINERS


def holds_lazy(values: Any) -> bool:
    """Return whether ``values`` is a symbolic number, or a container with one."""
    if type(values) not in _CONTAINERS:
        return type(values) in _LAZY
    return not _EITHER.isdisjoint(map(type, values)) and any(map(holds_lazy, values))


def _seen(value: Any) -> Any:
    """Return a symbolic number, or a list with one, as an array of symbolic numbers; any other ``value`` unchanged.

    In a list with arrays, or with items of different lengths, the items are converted instead.
    """
    if type(value) in _NUMBERS:
        return _array_of(value)
    if type(value) is np.ndarray and value.dtype == object and holds_lazy(value.reshape(-1).tolist()):
        return value.view(SymbolicArray)
    if type(value) not in _CONTAINERS or not holds_lazy(value):
        return value
    lengths = {len(each) if type(each) in _CONTAINERS else np.shape(each) for each in value}
    if len(lengths) == 1 and not any(isinstance(each, np.ndarray) for each in value):
        return _array_of(value)
    return type(value)(map(_seen, value))


def _array_of(value: Any) -> Any:
    return _REAL_ASARRAY(value, dtype=object).view(SymbolicArray)


def _function_of_float(self: SymbolicFloat, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call the NumPy function ``func`` with arrays in place of symbolic numbers, or of lists of them.

    The parameters are those of NumPy's ``__array_function__``, by which NumPy calls this function for a symbolic
    number.
    """
    given = [*args, *kwargs.values()]
    if not any(type(value) in _NUMBERS for value in given):
        given = [list(value) if isinstance(value, SymbolicArray) and value.ndim else value for value in given]
    given = [*map(_alone_too, given)]
    return func(*given[: len(args)], **dict(zip(kwargs, given[len(args) :], strict=True)))


def _alone_too(value: Any) -> Any:
    return type(value)(map(_alone_too, value)) if type(value) in _CONTAINERS else _seen(value)


_REAL_ASARRAY, _NDARRAY = np.asarray, np.ndarray
SymbolicFloat.__array_function__ = _function_of_float  # type: ignore[attr-defined]  # as ``__array_ufunc__`` is


# What stands for the functions while a block is open


class _Called:
    """A NumPy function that converts symbolic numbers in its arguments to arrays; its attributes are the original's."""

    __slots__ = ("_real",)

    def __init__(self, real: Any) -> None:
        """Wrap ``real``, a NumPy function."""
        self._real = real

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped NumPy function, with arrays in place of symbolic numbers and of lists of them."""
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
    """Return a constructor that behaves as ``real``, but makes a symbolic array if a value is symbolic.

    ``first`` is the name of its parameter with the values.
    """

    def make(*args: Any, **kwargs: Any) -> Any:
        return made(kwargs.pop(first), **kwargs) if first in kwargs else made(*args, **kwargs)

    def made(values: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(values, Iterator) and real is _FROM_ITERATOR:
            values = list(values)
        if not holds_lazy(values):
            return real(values, dtype, *args, **kwargs)
        result = _array_of(values)
        return result if dtype is None else result.astype(dtype)

    return make


_FROM_ITERATOR = np.fromiter
_DISPATCHED = type(np.sort)
FUNCTIONS: dict[str, Any] = {
    name: _Called(value) for name, value in vars(np).items() if isinstance(value, np.ufunc | _DISPATCHED)
}
_FIRST = {"array": "object", "asarray": "a", "fromiter": "iter"}
MADE: dict[str, Any] = {name: _making(getattr(np, name), first) for name, first in _FIRST.items()}
"""NumPy name -> replacement of a function that creates arrays of numbers."""


# Lazy buffers


_SHAPE = {"_beside", "base", "dtype", "flags", "itemsize", "ndim", "shape", "size", "strides", "nbytes", "T",
          "transpose", "swapaxes", "squeeze", "setflags", "reshape", "ravel", "fill"}  # fmt: skip
"""Attributes that depend only on the shape, and views; a filled array answers them itself."""
_READING = ANSWERED | {
    "copy", "tolist", "item", "sum", "cumsum", "prod", "mean", "cumprod", "any", "all", "clip", "take", "repeat",
    "flatten", "nonzero", "dot", "diagonal"}  # fmt: skip
"""Methods that read elements."""
_COPYTO = np.copyto
_WRITING = {np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis}


class Beside:
    """The symbolic elements of a float array, which cannot store them in its own memory.

    All views of the array share one such object.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        """Prepare to store symbolic elements for the memory of ``array``; there are none yet."""
        self.address, self.bytes, self.itemsize = array.ctypes.data, array.nbytes, array.itemsize
        self.memory = array.view(np.ndarray).reshape(-1)
        self.elements: Any = None
        """Object array of plain and symbolic numbers; None until a symbolic number is written."""

    def has(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether ``array`` uses this memory, as a view of the original array does."""
        address: int = array.__array_interface__["data"][0]
        return self.address <= address < self.address + self.bytes

    def fill(self) -> None:
        """Create the object array of the elements with the numbers in the memory, unless it exists.

        The memory is then overwritten with random numbers, so that a replay detects code that reads it.
        """
        if self.elements is None:
            self.elements = self.memory.astype(object)
            self.memory[...] = np.frombuffer(os.urandom(self.memory.size), dtype=np.uint8) / 256


class Buffer(np.ndarray[Any, Any]):
    """An array of floats that foreign code may fill with random numbers, as it does with the result of ``np.empty``.

    It is an ordinary array until a symbolic number is written into it; after that it is called a filled buffer.
    """

    _beside: Beside | None

    def __array_finalize__(self, other: Any) -> None:
        """Give a view the symbolic elements of its base ``other``; called by NumPy for every new array."""
        beside = getattr(other, "_beside", None)
        self._beside = beside if beside is not None and self.size and beside.has(self) else None

    def __getattribute__(self, name: str) -> Any:
        """Return the attribute ``name`` of the array.

        For a filled buffer, attributes that read elements are those of the object array of its elements. Attributes
        that would read the memory in another way, or write to it, are refused.
        """
        if name in _SHAPE or name.startswith("__") or not hasattr(np.ndarray, name):
            return super().__getattribute__(name)
        beside = super().__getattribute__("_beside")
        if beside is None or beside.elements is None:
            return super().__getattribute__(name)
        if name not in _READING:
            raise refusal("write-not-followed", f"{name} of an array that random numbers were written into")
        return getattr(contents_of(self), name)

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """Return the array in another shape: a view where NumPy makes one, otherwise a copy of the elements."""
        return self._viewed(super().reshape(*shape, **kwargs), "reshape", *shape, **kwargs)

    def ravel(self, *args: Any, **kwargs: Any) -> Any:
        """Return the array with one dimension: a view where NumPy makes one, otherwise a copy of the elements."""
        return self._viewed(super().ravel(*args, **kwargs), "ravel", *args, **kwargs)

    def _viewed(self, found: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        if not _filled(self) or found._beside is self._beside:  # noqa: SLF001 - of this file
            return found
        return getattr(contents_of(self), name)(*args, **kwargs)

    def fill(self, value: Any) -> None:
        """Write ``value`` to every element."""
        self[...] = value

    def __getitem__(self, index: Any) -> Any:
        """Return what ``index`` selects: an element, a view, or a copy of elements, as for an ordinary array."""
        result = super().__getitem__(index)
        if not _filled(self) or (isinstance(result, Buffer) and result._beside is self._beside):  # noqa: SLF001
            return result
        return contents_of(self)[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write ``value``, plain or symbolic numbers, at ``index``."""
        beside, value = self._beside, contents_of(value)
        if beside is not None and holds_lazy(value):
            beside.fill()
        if beside is None or beside.elements is None:
            super().__setitem__(index, value)
            return
        places = _places(self)[index]
        written = narrowed_elements(np.asarray(value, dtype=object), self.dtype)
        beside.elements[np.ravel(places)] = np.broadcast_to(written, np.shape(places)).ravel()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        """Apply ``ufunc`` to the elements of the buffers in ``inputs``; ``method`` is its method, such as ``__call__``.

        If symbolic results are written into the array ``out``, it stores them as its symbolic elements.
        """
        if MASK in kwargs and len(out) == 1:
            kwargs["out"] = np.array(contents_of(out[0]), dtype=object)
        result = getattr(ufunc, method)(*map(contents_of, inputs), **kwargs)
        for target in out:
            target[...] = result
        return out[0] if len(out) == 1 else out or result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call the NumPy function ``func`` on the elements of buffers, in place of the buffers.

        Raises ``NeedsValue`` if the function writes into a buffer that holds symbolic numbers.
        """
        if func is _COPYTO and len(args) == 2 and not kwargs and isinstance(args[0], Buffer):
            args[0][...] = args[1]
            return None
        targets = [kwargs.get("out"), *(args[:1] if func in _WRITING else ())]
        if any(isinstance(target, Buffer) and _filled(target) for target in targets):
            raise refusal(
                "write-not-followed", f"np.{func.__name__} writes into an array that random numbers were written into"
            )
        return func(*map(_contents_inside, args), **{name: _contents_inside(value) for name, value in kwargs.items()})


def _filled(array: Buffer) -> bool:
    return array._beside is not None and array._beside.elements is not None  # noqa: SLF001 - of this file


def contents_of(value: Any) -> Any:
    """Return the elements of a buffer, symbolic if there are any; other values unchanged."""
    if not isinstance(value, Buffer):
        return value
    if not _filled(value):
        return value.view(np.ndarray)
    return value._beside.elements[_places(value)].view(SymbolicArray)  # type: ignore[union-attr]  # noqa: SLF001


def _contents_inside(value: Any) -> Any:
    return type(value)(map(_contents_inside, value)) if type(value) in {list, tuple} else contents_of(value)


def _places(array: Buffer) -> np.ndarray[Any, Any]:
    """Return the positions of the elements of ``array``, perhaps a view, in the memory of its base."""
    beside = array._beside  # noqa: SLF001 - of this file
    assert beside is not None
    result = np.array((array.__array_interface__["data"][0] - beside.address) // beside.itemsize)
    for length, stride in zip(array.shape, array.strides, strict=True):
        result = result[..., None] + np.arange(length) * (stride // beside.itemsize)
    return result


for _name in ("bool", "float", "int", "index", "contains", "complex"):

    def _of_elements(self: Buffer, *args: Any, _method: str = f"__{_name}__") -> Any:
        return getattr(contents_of(self), _method)(*args)

    setattr(Buffer, f"__{_name}__", _of_elements)


def _making_buffers(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a replacement of the NumPy constructor ``real``.

    If foreign code calls it and ``real`` makes an array of floats, it returns this array as a ``Buffer``; otherwise
    what ``real`` returns.
    """

    def make(*args: Any, **kwargs: Any) -> Any:
        result, filename = real(*map(contents_of, args), **kwargs), sys._getframe(1).f_code.co_filename  # noqa: SLF001
        if type(result) is not np.ndarray or result.dtype.kind != "f" or is_ours_or_answered(filename):
            return result
        made = result.view(Buffer)
        made._beside = Beside(result)  # noqa: SLF001 - of this file
        return made

    return make


def _reading(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a constructor like ``make`` that gets the elements of buffers, symbolic ones too, instead of the buffers.

    ``make`` itself would read the memory of a buffer, which does not hold its symbolic elements.
    """

    def read(*args: Any, **kwargs: Any) -> Any:
        return make(*map(contents_of, args), **{name: contents_of(value) for name, value in kwargs.items()})

    return read


_MADE = (
    FUNCTIONS
    | MADE
    | {
        name: _making_buffers(getattr(np, name))
        for name in ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like", "full_like")
    }
    | {name: _reading(MADE.get(name) or getattr(np, name)) for name in ("array", "asarray", "ascontiguousarray")}
)


_REAL = itemgetter(*_MADE)


def _by_name(functions: tuple[Any, ...]) -> dict[str, Any]:
    if functions != PROCESS.functions[0]:  # somebody has exchanged one of them
        PROCESS.functions = functions, dict(zip(_MADE, functions, strict=True))
    return PROCESS.functions[1]


@once
@contextmanager
def arrays_answer() -> Iterator[None]:
    """Context manager that patches NumPy, so that its functions accept symbolic numbers.

    NumPy's constructors then return arrays that can hold symbolic numbers.
    """
    own = vars(np)
    before = _by_name(_REAL(own))  # one look for all names
    own.update(_MADE)
    try:
        yield
    finally:
        own.update(before)
