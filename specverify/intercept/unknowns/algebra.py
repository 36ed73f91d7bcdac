"""What can be done with a random number that nobody has valued: one function for each operation, for all libraries.

Operands are numbers and random numbers, at least one of these. What comes out is a random number, or a number where no
chance is left in it. Events of probability 0 do not happen here: a value is neither infinite nor NaN; where a value is
forced, the program computes with floats. A step of one number that does not keep or turn its order raises
``NeedsValue``; what is made of several is ``joined``. Whole parts are drawn where they are few.

``ALGEBRA`` names the operations as NumPy does: scalars, arrays and tensors dispatch to it, element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, copysign, floor, inf, isfinite, isinf, isnan, log  # by name: inside a block ``math`` has others
from typing import Any, TypeAlias

import numpy as np

from specverify.intercept.unknowns.continuous import Continuous, Extreme, largest_of
from specverify.intercept.unknowns.finite import MOST_OUTCOMES
from specverify.intercept.unknowns.joined import UNKNOWN, Joined, Unknown, joined
from specverify.intercept.unknowns.remembered import found_before
from specverify.intercept.unknowns.steps import EXP, FLOOR, LOG, plus, power, times
from specverify.intercept.unknowns.uniform import NeedsValue

Operand: TypeAlias = Continuous | Extreme | Joined | float
LOG_2, LOG_10 = log(2), log(10)


def applied(name: str, *operands: Any) -> Any:
    """Return what an operation of ``ALGEBRA`` gives; of numbers alone what NumPy makes of them, without warnings."""
    if any(isinstance(operand, UNKNOWN) for operand in operands):
        given = tuple(each if isinstance(each, UNKNOWN) else float(each) for each in operands)
        found = found_before(ALGEBRA[name], given) if name in _MONOTONE else NotImplemented
        return ALGEBRA[name](*given) if found is NotImplemented else found
    with np.errstate(all="ignore"):
        return _of_numbers(name)(*map(np.float64, operands)).item()


def _of_numbers(name: str) -> Callable[..., Any]:
    return _UNKNOWN_TO_NUMPY.get(name) or getattr(np, name)


# Sums and products


def _apart(left: Operand, right: Operand, what: str) -> tuple[Unknown, float]:
    """Return the random number and the other one; refuses two random ones."""
    value, number = (left, right) if isinstance(left, UNKNOWN) else (right, left)
    if isinstance(number, UNKNOWN) or not isinstance(value, UNKNOWN):
        raise NeedsValue(f"random numbers are {what}")
    return value, number


def _of_two(name: str, left: Unknown, right: Unknown) -> Operand:
    """Return what is made of two random numbers; nothing is left of one and minus itself."""
    if name == "add" and right == left.then(times(-1.0)):
        return 0.0
    return left.then(times(2.0)) if name == "add" and left == right else joined(name, left, right)


def _sign(value: Unknown, what: str) -> float:
    """Return the sign of a random number; refuses one whose sign is not known."""
    low, high = value.ends()
    if low < 0 < high:
        raise NeedsValue(f"{what} a random number of unknown sign")
    return 1.0 if low >= 0 else -1.0


def _add(left: Operand, right: Operand) -> Operand:
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        return _of_two("add", left, right)
    value, number = _apart(left, right, "added or subtracted")
    return value.then(plus(number)) if isfinite(number) else number


def _negative(value: Operand) -> Operand:
    return value.then(times(-1.0)) if isinstance(value, UNKNOWN) else -value


def _multiply(left: Operand, right: Operand) -> Operand:
    if isinstance(left, UNKNOWN) and left == right:
        return _square(left)
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        return _of_two("multiply", left, right)
    value, number = _apart(left, right, "multiplied")
    if 0 < abs(number) < inf:
        return value.then(times(number))
    return number if isnan(number) else number * _sign(value, f"{number} is multiplied by")


def _divide(left: Operand, right: Operand) -> Operand:
    if isinstance(right, UNKNOWN):
        if isinstance(right, Joined) and right == Joined("add", right.operands) and left in right.operands:
            rest = right.operands[right.operands[0] == left]
            return _divide(1.0, _add(_divide(rest, left), 1.0))  # in which each number stands once
        sign = _sign(right, "a number is divided by")
        upside_down = right.then(times(sign)).then(power(-1.0)).then(times(sign))
        return _multiply(upside_down, left)
    if right == 0 and isinstance(left, UNKNOWN):
        return copysign(inf, right) * _sign(left, "0 divides")
    return _multiply(left, 1.0 / right)


# Powers and logarithms


def _raised(base: Operand, exponent: Operand) -> Operand:
    if isinstance(base, UNKNOWN):
        if isinstance(exponent, UNKNOWN):
            return _exp(_multiply(exponent, _log(base)))
        if isinf(exponent):
            return _to_infinity(base, exponent)
        if exponent == 0 or isnan(exponent):
            return 1.0 if exponent == 0 else exponent
        return _nonnegative(base, "a power is taken of").then(power(exponent))
    if not 0 < base < inf:
        raise NeedsValue(f"{base} is raised to a random power")
    return _exp(_multiply(exponent, log(base)))


def _to_infinity(base: Unknown, exponent: float) -> float:
    low, high = base.ends()
    if not (low >= 0 and high <= 1) and not low >= 1:
        raise NeedsValue("a random number that may be below 1 or above it is raised to an infinite power")
    return inf if (exponent > 0) == (low >= 1) else 0.0


def _nonnegative(value: Unknown, what: str) -> Unknown:
    if value.ends()[0] < 0:
        raise NeedsValue(f"{what} a random number of unknown sign, or below 0")
    return value


def _square(value: Unknown) -> Operand:
    return value.then(times(_sign(value, "a square is taken of"))).then(power(2.0))


def _log(value: Operand) -> Operand:
    if isinstance(value, UNKNOWN):
        return _nonnegative(value, "a logarithm is taken of").then(LOG)
    return float(applied("log", value))


def _exp(value: Operand) -> Operand:
    return value.then(EXP) if isinstance(value, UNKNOWN) else float(applied("exp", value))


# Clamps and whole parts


def _maximum(left: Operand, right: Operand) -> Operand:
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        if any(isinstance(each, Joined) or (isinstance(each, Extreme) and not each.largest) for each in (left, right)):
            return _of_two("maximum", left, right)
        return largest_of((left, right))
    value, number = _apart(left, right, "compared with each other")
    low, high = value.ends()
    if not low < number < high:
        return value if number <= low else number
    return value.at_least(number)


def _size(value: Unknown) -> Operand:
    """Return the larger one of a number and its negative, which of the two is known if its sign is."""
    low, high = value.ends()
    return value if low >= 0 else _negative(value) if high <= 0 else _maximum(value, _negative(value))


def _minimum(left: Operand, right: Operand) -> Operand:
    return _negative(_maximum(_negative(left), _negative(right)))


def _clip(value: Operand, low: float, high: float) -> Operand:
    raised = applied("maximum", value, low)
    return float("nan") if isnan(low) else applied("minimum", raised, high)


def _floor(value: Unknown) -> Operand:
    """Return the whole part: drawn where it is one of few, else a random number that has steps."""
    low, high = value.ends()
    if not high - low <= MOST_OUTCOMES:
        return value.then(FLOOR)
    first, last = floor(low), max(floor(low), ceil(high) - 1)
    if high == floor(high) and value.below(high) is False:  # a clamp that is reached
        return float(high)
    return float(first + value.interval_of([float(bound) for bound in range(first + 1, last + 1)]))


def _trunc(value: Unknown) -> Operand:
    low, _ = value.ends()
    if low >= 0 or not value.below(0.0):
        return _floor(value)
    return _negative(applied("floor", _negative(value)))


def _rint(value: Unknown) -> Operand:
    """Return the nearest whole number. Half of one goes to the even one: refused where that has a probability."""
    if isinstance(value, Joined):
        raise NeedsValue("a random number that is made of several is rounded to the nearest whole one")
    for part in value.parts if isinstance(value, Extreme) else (value,):
        ends = (part.low, part.high) if isinstance(part, Continuous) and part.clamped else ()
        stepped = isinstance(part, Continuous) and part.in_steps
        if stepped or any(end % 1 == 1 / 2 for end in (ends if isinstance(part, Continuous) else (part,))):
            raise NeedsValue("a random number that may be half of a whole one is rounded")
    return applied("floor", _add(value, 0.5))  # type: ignore[no-any-return]


def _sign_of(value: Unknown) -> float:
    if value.equals(0.0):
        return 0.0
    return -1.0 if value.below(0.0) else 1.0


def _floor_divide(left: Operand, right: Operand) -> Operand:
    return applied("floor", _divide(left, right))  # type: ignore[no-any-return]


def _rest(whole: Operand, left: Operand, right: Operand) -> Operand:
    """Return what is left of ``left`` when it is divided by ``right`` so many whole times."""
    if isinstance(whole, UNKNOWN) or isinstance(right, UNKNOWN):
        raise NeedsValue("the rest of a division of random numbers is needed")
    return applied("subtract", left, whole * right)  # type: ignore[no-any-return]


def _heaviside(value: Operand, at_zero: Operand) -> Operand:
    if not isinstance(value, UNKNOWN):
        return at_zero if value == 0 else float(value > 0)
    sign = _sign_of(value)
    return at_zero if sign == 0 else float(sign > 0)


# Functions made of others


def _sigmoid(value: Operand) -> Operand:
    return _divide(1.0, _add(_exp(_negative(value)), 1.0))


def _logit(value: Operand) -> Operand:
    """``log(v / (1 - v))``, in which v stands once: ``-log(1/v - 1)``."""
    return _negative(_log(_add(_divide(1.0, value), -1.0)))


def _tanh(value: Operand) -> Operand:
    return _add(_multiply(_sigmoid(_multiply(value, 2.0)), 2.0), -1.0)


_MONOTONE = {"add", "subtract", "multiply", "divide", "negative", "reciprocal", "power", "sqrt", "square", "log", "exp",
             "log1p", "maximum", "minimum"}  # fmt: skip
"""What draws nothing, and asks for nothing but what is known of a fresh number."""
ALGEBRA: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": lambda left, right: _add(left, _negative(right)),
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "positive": lambda value: value,
    "reciprocal": lambda value: _divide(1.0, value),
    "absolute": _size,
    "fabs": _size,
    "power": _raised,
    "float_power": _raised,
    "sqrt": lambda value: _raised(value, 0.5),
    "rsqrt": lambda value: _raised(value, -0.5),
    "square": _square,
    "log": _log,
    "log2": lambda value: _multiply(_log(value), 1 / LOG_2),
    "log10": lambda value: _multiply(_log(value), 1 / LOG_10),
    "log1p": lambda value: _log(_add(value, 1.0)),
    "exp": _exp,
    "exp2": lambda value: _exp(_multiply(value, LOG_2)),
    "expm1": lambda value: _add(_exp(value), -1.0),
    "sigmoid": _sigmoid,
    "logit": _logit,
    "tanh": _tanh,
    "maximum": _maximum,
    "minimum": _minimum,
    "fmax": _maximum,
    "fmin": _minimum,
    "clip": _clip,
    "floor": _floor,
    "ceil": lambda value: _negative(applied("floor", _negative(value))),
    "trunc": _trunc,
    "rint": _rint,
    "floor_divide": _floor_divide,
    "remainder": lambda left, right: _rest(_floor_divide(left, right), left, right),
    "fmod": lambda left, right: _rest(applied("trunc", _divide(left, right)), left, right),
    "sign": _sign_of,
    "heaviside": _heaviside,
}
"""What each operation gives of operands of which one at least is random, by its name in NumPy."""


_UNKNOWN_TO_NUMPY: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "sigmoid": lambda value: 1 / (1 + np.exp(-value)),
    "logit": lambda value: np.log(value / (1 - value)),
}
"""Operations of torch that NumPy does not have."""
