"""What can be done with a random number that nobody has valued: one function for each operation, for all libraries.

Operands are numbers and random numbers, at least one of these. What comes out is a random number, or a number where no
chance is left in it. Events of probability 0 do not happen here: a value is neither infinite nor NaN; where a value is
forced, the program computes with floats. A step of one number that does not keep or turn its order raises
``NeedsValue``; what is made of several is ``joined``. Whole parts are drawn where they are few.

``ALGEBRA`` names the operations as NumPy does: scalars, arrays and tensors dispatch to it, element by element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, copysign, floor, isnan, log  # by name: inside a block ``math`` has others
from typing import Any

import numpy as np

from specverify.intercept.refusals import Declined, is_declined
from specverify.intercept.unknowns.arithmetic import (
    Operand,
    added,
    apart,
    divided,
    exponential,
    logarithm,
    multiplied,
    negative,
    of_two,
    raised,
    square,
)
from specverify.intercept.unknowns.continuous import Continuous, Extreme, largest_of
from specverify.intercept.unknowns.finite import MOST_OUTCOMES
from specverify.intercept.unknowns.given import EVEN
from specverify.intercept.unknowns.joined import UNKNOWN, Joined, Unknown
from specverify.intercept.unknowns.monotone import RULES
from specverify.intercept.unknowns.remembered import found_before
from specverify.intercept.unknowns.steps import FLOOR, MonotoneStep, rounded
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.intercept.unknowns.wide import continuous_in_16_bits

_NOT_REMEMBERED = Declined("the operation may draw, or ask what is known of a number")
LOG_2, LOG_10 = log(2), log(10)
MOST_UNEVEN = 64
"""Whole parts that are drawn where they are not as likely as each other: of the logarithm of a clamped uniform, say."""


def applied(name: str, *operands: Any) -> Any:
    """Return what an operation of ``ALGEBRA`` gives; of numbers alone what NumPy makes of them, without warnings."""
    random = [isinstance(operand, UNKNOWN) for operand in operands]
    if True in random:
        given = tuple([each if lazy else float(each) for each, lazy in zip(operands, random, strict=True)])
        found = found_before(ALGEBRA[name], given) if name in _MONOTONE else _NOT_REMEMBERED
        return ALGEBRA[name](*given) if is_declined(found) else found
    with np.errstate(all="ignore"):
        return _of_numbers(name)(*map(np.float64, operands)).item()


def _of_numbers(name: str) -> Callable[..., Any]:
    return _UNKNOWN_TO_NUMPY.get(name) or getattr(np, name)


_SHORT = {"float16": 11, "bfloat16": 8}
"""Bits of floats that are so few that a law shows it."""


def narrowed(value: Any, dtype: str) -> Any:
    """Return a random number as a float of a dtype has it, another value as it is.

    It is rounded to 16 bits, unless it is taken to be continuous all the same.
    """
    if dtype.startswith("float8"):
        raise NeedsValue(
            "few-bits", f"a random number is converted to {dtype}, which has too few numbers: compare it as it is"
        )
    bits = None if continuous_in_16_bits() else _SHORT.get(dtype)
    return value if bits is None or not isinstance(value, UNKNOWN) else value.then(rounded(bits))


def check_not_equal(dtype: str) -> None:
    """Raise ``NeedsValue`` where very many random numbers have so few bits that some of them are equal."""
    if dtype in _SHORT and not continuous_in_16_bits():
        raise NeedsValue(
            "few-bits", f"very many random numbers of {dtype} are often equal: draw them in float32, and keep them so"
        )


# Clamps and whole parts


def _maximum(left: Operand, right: Operand) -> Operand:
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        if any(isinstance(each, Joined) or (isinstance(each, Extreme) and not each.largest) for each in (left, right)):
            return of_two("maximum", left, right)
        return largest_of((left, right))
    value, number = apart(left, right, "compared with each other")
    low, high = value.ends()
    if not low < number < high:
        return value if number <= low else number
    return value.at_least(number)


def _size(value: Unknown) -> Operand:
    """Return the larger one of a number and its negative, which of the two is known if its sign is."""
    low, high = value.ends()
    return value if low >= 0 else negative(value) if high <= 0 else _maximum(value, negative(value))


def _minimum(left: Operand, right: Operand) -> Operand:
    return negative(_maximum(negative(left), negative(right)))


def _clip(value: Operand, low: float, high: float) -> Operand:
    raised = applied("maximum", value, low)
    return float("nan") if isnan(low) else applied("minimum", raised, high)


def whole_parts_are_few(value: Unknown) -> bool:
    """Return whether a whole part is drawn. Where they are not as likely as each other, most are not worth a run."""
    low, high = value.ends()
    uneven = isinstance(value, Continuous) and not {step.name for step in value.steps} <= EVEN
    return high - low <= (MOST_UNEVEN if uneven else MOST_OUTCOMES)


def _floor(value: Unknown) -> Operand:
    """Return the whole part: drawn where it is one of few, else a random number that has steps."""
    low, high = value.ends()
    if not whole_parts_are_few(value):
        return value.then(FLOOR)
    first, last = floor(low), max(floor(low), ceil(high) - 1)
    if high == floor(high) and value.below(high) is False:  # a clamp that is reached
        return float(high)
    return float(first + value.interval_of([float(bound) for bound in range(first + 1, last + 1)]))


def _trunc(value: Unknown) -> Operand:
    low, _ = value.ends()
    if low >= 0 or not value.below(0.0):
        return _floor(value)
    return negative(applied("floor", negative(value)))


def _rint(value: Unknown) -> Operand:
    """Return the nearest whole number. Half of one goes to the even one: refused where that has a probability."""
    if isinstance(value, Joined):
        raise NeedsValue("rest-needed", "a random number that is made of several is rounded to the nearest whole one")
    for part in value.parts if isinstance(value, Extreme) else (value,):
        ends = (part.low, part.high) if isinstance(part, Continuous) and part.clamped else ()
        stepped = isinstance(part, Continuous) and part.in_steps
        if stepped or any(end % 1 == 1 / 2 for end in (ends if isinstance(part, Continuous) else (part,))):
            raise NeedsValue("rest-needed", "a random number that may be half of a whole one is rounded")
    return applied("floor", added(value, 0.5))  # type: ignore[no-any-return]


def _sign_of(value: Unknown) -> float:
    if value.equals(0.0):
        return 0.0
    return -1.0 if value.below(0.0) else 1.0


def _with_sign(size: Operand, sign: Operand) -> Operand:
    """Return a number with the sign of another; that of one that is random is drawn."""
    below = sign.below(0.0) if isinstance(sign, UNKNOWN) else copysign(1.0, sign) < 0
    found = applied("absolute", size)
    return negative(found) if below else found


def _floor_divide(left: Operand, right: Operand) -> Operand:
    return applied("floor", divided(left, right))  # type: ignore[no-any-return]


def _rest(whole: Operand, left: Operand, right: Operand) -> Operand:
    """Return what is left of ``left`` when it is divided by ``right`` so many whole times."""
    if isinstance(whole, UNKNOWN) or isinstance(right, UNKNOWN):
        raise NeedsValue("rest-needed", "the rest of a division of random numbers is needed")
    return applied("subtract", left, whole * right)  # type: ignore[no-any-return]


def _heaviside(value: Operand, at_zero: Operand) -> Operand:
    if not isinstance(value, UNKNOWN):
        return at_zero if value == 0 else float(value > 0)
    sign = _sign_of(value)
    return at_zero if sign == 0 else float(sign > 0)


# Functions made of others


def _sigmoid(value: Operand) -> Operand:
    return divided(1.0, added(exponential(negative(value)), 1.0))


def _logit(value: Operand) -> Operand:
    """``log(v / (1 - v))``, in which v stands once: ``-log(1/v - 1)``."""
    return negative(logarithm(added(divided(1.0, value), -1.0)))


def _tanh(value: Operand) -> Operand:
    return added(multiplied(_sigmoid(multiplied(value, 2.0)), 2.0), -1.0)


def _by_rule(name: str, value: Unknown) -> Operand:
    return value.then(MonotoneStep(name))


_MONOTONE = {"add", "subtract", "multiply", "divide", "negative", "reciprocal", "power", "sqrt", "square", "log", "exp",
             "log1p", "maximum", "minimum", *RULES}  # fmt: skip
"""What draws nothing, and asks for nothing but what is known of a fresh number."""
ALGEBRA: dict[str, Callable[..., Any]] = {
    "add": added,
    "subtract": lambda left, right: added(left, negative(right)),
    "multiply": multiplied,
    "divide": divided,
    "negative": negative,
    "positive": lambda value: value,
    "reciprocal": lambda value: divided(1.0, value),
    "absolute": _size,
    "fabs": _size,
    "power": raised,
    "float_power": raised,
    "sqrt": lambda value: raised(value, 0.5),
    "cbrt": lambda value: raised(value, 1 / 3),
    "rsqrt": lambda value: raised(value, -0.5),
    "square": square,
    "log": logarithm,
    "log2": lambda value: multiplied(logarithm(value), 1 / LOG_2),
    "log10": lambda value: multiplied(logarithm(value), 1 / LOG_10),
    "log1p": lambda value: logarithm(added(value, 1.0)),
    "exp": exponential,
    "exp2": lambda value: exponential(multiplied(value, LOG_2)),
    "expm1": lambda value: added(exponential(value), -1.0),
    "logaddexp": lambda left, right: logarithm(added(exponential(left), exponential(right))),
    "copysign": _with_sign,
    "sigmoid": _sigmoid,
    "logit": _logit,
    "tanh": _tanh,
    "maximum": _maximum,
    "minimum": _minimum,
    "fmax": _maximum,
    "fmin": _minimum,
    "clip": _clip,
    "floor": _floor,
    "ceil": lambda value: negative(applied("floor", negative(value))),
    "trunc": _trunc,
    "rint": _rint,
    "floor_divide": _floor_divide,
    "remainder": lambda left, right: _rest(_floor_divide(left, right), left, right),
    "fmod": lambda left, right: _rest(applied("trunc", divided(left, right)), left, right),
    "sign": _sign_of,
    "heaviside": _heaviside,
    **{name: partial(_by_rule, name) for name in RULES},
}
"""What each operation gives of operands of which one at least is random, by its name in NumPy."""


_UNKNOWN_TO_NUMPY: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda value: 1 / np.sqrt(value),
    "sigmoid": lambda value: 1 / (1 + np.exp(-value)),
    "logit": lambda value: np.log(value / (1 - value)),
}
"""Operations of torch that NumPy does not have."""
