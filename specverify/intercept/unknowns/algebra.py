"""What can be done with a random number that nobody has valued: one function for each operation, for all libraries.

Operands are numbers and ``Continuous``, at least one of these. What comes out is a ``Continuous``, a number where no
chance is left in it, or an answer to a comparison. Events of probability 0 do not happen here: a value is neither
infinite nor NaN, and equals no number; where a value is forced, the program computes with floats. What is not a
function of one uniform that keeps or turns its order raises ``NeedsValue``.

``ALGEBRA`` names the operations as NumPy does. Scalars, arrays and tensors dispatch to it, element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from specverify.intercept.unknowns.continuous import EXP, LOG, Continuous, plus, power, times
from specverify.intercept.unknowns.uniform import NeedsValue

Operand: TypeAlias = Continuous | float
LOG_2, LOG_10 = math.log(2), math.log(10)


def applied(name: str, *operands: Any) -> Any:
    """Return what an operation of ``ALGEBRA`` gives; of numbers alone what NumPy makes of them, without warnings."""
    if any(isinstance(operand, Continuous) for operand in operands):
        return ALGEBRA[name](*(each if isinstance(each, Continuous) else float(each) for each in operands))
    with np.errstate(all="ignore"):
        return getattr(np, name)(*map(np.float64, operands)).item()


# Sums and products


def _apart(left: Operand, right: Operand, what: str) -> tuple[Continuous, float]:
    """Return the random number and the other one; refuses two random ones."""
    value, number = (left, right) if isinstance(left, Continuous) else (right, left)
    if isinstance(number, Continuous) or not isinstance(value, Continuous):
        raise NeedsValue(f"two random numbers are {what}")
    return value, number


def _sign(value: Continuous, what: str) -> float:
    """Return the sign of a random number; refuses one whose sign is not known."""
    low, high = value.ends()
    if low < 0 < high:
        raise NeedsValue(f"{what} a random number of unknown sign")
    return 1.0 if low >= 0 else -1.0


def _add(left: Operand, right: Operand) -> Operand:
    value, number = _apart(left, right, "added or subtracted")
    return value.then(plus(number)) if math.isfinite(number) else number


def _negative(value: Operand) -> Operand:
    return value.then(times(-1.0)) if isinstance(value, Continuous) else -value


def _multiply(left: Operand, right: Operand) -> Operand:
    if isinstance(left, Continuous) and left == right:
        return _square(left)
    value, number = _apart(left, right, "multiplied")
    if 0 < abs(number) < math.inf:
        return value.then(times(number))
    return number if math.isnan(number) else number * _sign(value, f"{number} is multiplied by")


def _divide(left: Operand, right: Operand) -> Operand:
    if isinstance(right, Continuous):
        if isinstance(left, Continuous):
            raise NeedsValue("a random number is divided by another")
        sign = _sign(right, "a number is divided by")
        return _multiply(right.then(times(sign)).then(power(-1.0)), left * sign)
    if right == 0 and isinstance(left, Continuous):
        return math.copysign(math.inf, right) * _sign(left, "0 divides")
    return _multiply(left, 1.0 / right)


# Powers and logarithms


def _raised(base: Operand, exponent: Operand) -> Operand:
    if isinstance(base, Continuous):
        if isinstance(exponent, Continuous) or math.isinf(exponent):
            raise NeedsValue("a random number is raised to a power that is random or infinite")
        if exponent == 0 or math.isnan(exponent):
            return 1.0 if exponent == 0 else exponent
        return _nonnegative(base, "a power is taken of").then(power(exponent))
    if not 0 < base < math.inf:
        raise NeedsValue(f"{base} is raised to a random power")
    return _exp(_multiply(exponent, math.log(base)))


def _nonnegative(value: Continuous, what: str) -> Continuous:
    if value.ends()[0] < 0:
        raise NeedsValue(f"{what} a random number of unknown sign, or below 0")
    return value


def _square(value: Continuous) -> Operand:
    return value.then(times(_sign(value, "a square is taken of"))).then(power(2.0))


def _log(value: Operand) -> Operand:
    if isinstance(value, Continuous):
        return _nonnegative(value, "a logarithm is taken of").then(LOG)
    return float(applied("log", value))


def _exp(value: Operand) -> Operand:
    return value.then(EXP) if isinstance(value, Continuous) else float(applied("exp", value))


# Clamps


def _maximum(left: Operand, right: Operand) -> Operand:
    value, number = _apart(left, right, "compared with each other")
    low, high = value.ends()
    if not low < number < high:
        return value if number <= low else number
    return value._replace(low=max(value.low, number))


def _minimum(left: Operand, right: Operand) -> Operand:
    return _negative(_maximum(_negative(left), _negative(right)))


def _clip(value: Operand, low: float, high: float) -> Operand:
    raised = applied("maximum", value, low)
    return float("nan") if math.isnan(low) else applied("minimum", raised, high)


# Comparisons


def _less(left: Operand, right: Operand, place: str = "", *, or_equal: bool = False) -> bool:
    """Return whether ``left`` is below ``right``; ``place`` is the line that compares, if it is not the running one."""
    if isinstance(left, Continuous):
        return _same(left, right) and or_equal if isinstance(right, Continuous) else left.below(right, place)
    return not math.isnan(left) and isinstance(right, Continuous) and not right.below(left, place)


def _equal(left: Operand, right: Operand, place: str = "") -> bool:
    if isinstance(left, Continuous) and isinstance(right, Continuous):
        return _same(left, right)
    return Continuous.equals(*_apart(left, right, "compared"))


def _same(left: Continuous, right: Continuous) -> bool:
    """Return that both are one number; refuses the comparison if they are not."""
    if left != right:
        raise NeedsValue("two random numbers are compared with each other")
    return True


ALGEBRA: dict[str, Callable[..., Any]] = {
    "add": _add,
    "subtract": lambda left, right: _add(left, _negative(right)),
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "positive": lambda value: value,
    "reciprocal": lambda value: _divide(1.0, value),
    "absolute": lambda value: value.then(times(_sign(value, "the size is taken of"))),
    "fabs": lambda value: value.then(times(_sign(value, "the size is taken of"))),
    "power": _raised,
    "float_power": _raised,
    "sqrt": lambda value: _raised(value, 0.5),
    "square": _square,
    "log": _log,
    "log2": lambda value: _multiply(_log(value), 1 / LOG_2),
    "log10": lambda value: _multiply(_log(value), 1 / LOG_10),
    "log1p": lambda value: _log(_add(value, 1.0)),
    "exp": _exp,
    "exp2": lambda value: _exp(_multiply(value, LOG_2)),
    "expm1": lambda value: _add(_exp(value), -1.0),
    "maximum": _maximum,
    "minimum": _minimum,
    "clip": _clip,
    "less": _less,
    "less_equal": partial(_less, or_equal=True),
    "greater": lambda left, right, place="": _less(right, left, place),
    "greater_equal": lambda left, right, place="": _less(right, left, place, or_equal=True),
    "equal": _equal,
    "not_equal": lambda left, right, place="": not _equal(left, right, place),
    "isnan": lambda value: False,
    "isinf": lambda value: False,
    "isfinite": lambda value: True,
}
"""What each operation gives of operands of which one at least is random, by its name in NumPy."""
YES_OR_NO = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "isinf", "isfinite"}
"""Those that give an answer, not a number."""
