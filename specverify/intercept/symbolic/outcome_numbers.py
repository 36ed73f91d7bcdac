"""An integer that is a symbolic outcome: it is drawn when the program reads it.

Every operation and conversion of ``OutcomeNumber`` reads the outcome and then applies to the integer. A number that is
only passed on, such as a last token that is appended to a list and returned, is never read: one run then stands for all
outcomes of its draw.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np


class OutcomeNumber:
    """A stand-in for an ``int`` whose value is drawn when the program reads it."""

    __slots__ = ("_outcome",)

    __class__: Any = property(lambda self: int)  # code that asks for the type does not read the value

    def __init__(self, outcome: Any) -> None:
        """Wrap ``outcome``, a ``Deferred`` with integer values."""
        self._outcome = outcome

    def __getattr__(self, name: str) -> Any:
        if not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute {name!r}")
        return getattr(number_in(self), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(number_in(self), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Apply a ufunc to the integer, which is drawn; as a Python number it takes the dtype of the other operand."""
        return getattr(ufunc, method)(*_read(inputs), **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call a NumPy function with the integer, which is drawn."""
        return func(*_read(args), **dict(zip(kwargs, _read(tuple(kwargs.values())), strict=True)))


def number_in(number: OutcomeNumber) -> int:
    """Return the integer that ``number`` stands for, drawing it if needed."""
    return int(outcome_in(number).value())


def outcome_in(value: Any) -> Any:
    """Return the symbolic outcome inside an ``OutcomeNumber``; any other ``value`` unchanged."""
    return value._outcome if type(value) is OutcomeNumber else value  # noqa: SLF001 - of this module


def _read(value: Any) -> Any:
    """Return ``value`` with each ``OutcomeNumber`` in it replaced by its integer, drawn.

    Also inside lists and tuples.
    """
    if type(value) is OutcomeNumber:
        return number_in(value)
    return type(value)(map(_read, value)) if type(value) in {list, tuple} else value


def _forwarding(name: str) -> Callable[..., Any]:
    def method(self: OutcomeNumber, *args: Any) -> Any:
        return getattr(number_in(self), name)(*args)

    return method


def _operation(apply: Callable[..., Any], *, swapped: bool = False) -> Callable[..., Any]:
    """Return the method that reads the integer and calls ``apply``; ``swapped``: the integer is the right operand."""

    def method(self: OutcomeNumber, other: Any, *modulus: Any) -> Any:
        number = number_in(self)
        return apply(other, number, *modulus) if swapped else apply(number, other, *modulus)

    return method


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift")
    },
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "divmod": divmod,
    "pow": pow,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
_OWN = {"__class__", "__new__", "__init__", "__init_subclass__", "__subclasshook__", "__dir__", "__getattribute__",
        "__setattr__", "__delattr__", "__doc__", "__sizeof__"}  # fmt: skip
"""What the class has itself, or what is no method."""
for _name in sorted({name for name in dir(int) if name.startswith("__")} - _OWN):
    setattr(OutcomeNumber, _name, _forwarding(_name))


for _name, _apply in (_ARITHMETIC | _COMPARISONS).items():
    setattr(OutcomeNumber, f"__{_name}__", _operation(_apply))
for _name, _apply in _ARITHMETIC.items():
    setattr(OutcomeNumber, f"__r{_name}__", _operation(_apply, swapped=True))


def _reduced(self: OutcomeNumber, *_: Any) -> Any:
    return int, (number_in(self),)


for _name in ("__reduce__", "__reduce_ex__"):
    setattr(OutcomeNumber, _name, _reduced)
for _name in ("__copy__", "__deepcopy__"):
    setattr(OutcomeNumber, _name, lambda self, *_: number_in(self))
OutcomeNumber.__complex__ = lambda self: complex(number_in(self))  # type: ignore[attr-defined]  # int has none, and is taken
