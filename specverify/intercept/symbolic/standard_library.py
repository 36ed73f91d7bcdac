"""Random numbers in Python's standard library: what ``float`` and ``math`` make of them, and what a Fraction asks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.intercept import float_calls
from specverify.intercept.caller import caller
from specverify.intercept.native_types import once, replaced
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.symbolic.arrays import narrowed_elements
from specverify.intercept.symbolic.numbers import SymbolicFloat, of_operands
from specverify.intercept.symbolic.primitives import OF_MATH


def _modf(value: SymbolicFloat) -> Any:
    whole = of_operands("trunc", value)
    return of_operands("subtract", value, whole), whole


_OWN: dict[str, Callable[..., Any]] = {"modf": _modf}


def _of_math(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    known = OF_MATH[name].name if name in OF_MATH else name

    def function(*args: Any) -> Any:
        if not any(isinstance(arg, SymbolicFloat) for arg in args):
            return real(*args)
        try:
            if name in _OWN:
                return _OWN[name](*args)
            if name == "log" and len(args) == 2:
                return of_operands("log", args[0]) / real(args[1])
            return of_operands(known, *args)
        except NeedsValue as refused:
            raise refused.during(f"math.{name}", caller()) from None

    return function


_MATH = {name: _of_math(name, getattr(math, name)) for name in (*OF_MATH, *_OWN) if hasattr(math, name)}


_BY_NAME = {getattr(math, name): function for name, function in _MATH.items()}


def _of_fraction(name: str, turned: str) -> Callable[..., Any]:
    """Return the relation of a Fraction to another number; a random one is asked for its relation to the Fraction."""
    real = getattr(Fraction, name)

    def relation(self: Fraction, other: Any) -> Any:
        return getattr(other, turned)(self) if isinstance(other, SymbolicFloat) else real(self, other)

    return relation


_TURNED = {"__lt__": "__gt__", "__le__": "__ge__", "__gt__": "__lt__", "__ge__": "__le__", "__eq__": "__eq__"}
_FRACTION = {name: _of_fraction(name, turned) for name, turned in _TURNED.items()}


def _as_float(*given: Any) -> Any:
    """Return what ``float`` does, and a random number as it is."""
    result = given[0].item() if len(given) == 1 and type(given[0]).__module__.startswith(_OURS) else None
    return SymbolicFloat(result.unknown) if isinstance(result, SymbolicFloat) else float(*given)


def _as_numpy(kind: Any) -> Callable[..., Any]:
    """Return what a floating type of NumPy makes of its argument: a random number is rounded to it and stays one."""

    def made(*given: Any) -> Any:
        result = _as_float(*given) if len(given) == 1 and type(given[0]).__module__.startswith(_OURS) else None
        return narrowed_elements(result, np.dtype(kind))[()] if isinstance(result, SymbolicFloat) else kind(*given)

    return made


_OURS = "specverify.intercept."
_TYPES = {kind: _as_float if kind is float else _as_numpy(kind) for kind in float_calls.TYPES}


@once
@contextmanager
def math_answers() -> Iterator[None]:
    """Let floating types, the functions of ``math`` and the relations of ``Fraction`` know random numbers in the block.

    They are to be called by ``float`` and ``math.log``; by another name in modules that have asked before.
    """
    with replaced(math, _MATH), replaced(Fraction, _FRACTION), float_calls.calls_led(_TYPES, _BY_NAME):
        yield
