"""What can be done with a random number that nobody has valued: the scalar rules of the table of ``elementwise``.

Operands are numbers and random numbers, at least one of these. What comes out is a random number, or a number where no
chance is left in it. Events of probability 0 do not happen here: a value is neither infinite nor NaN; where a value is
forced, the program computes with floats. A step of one number that does not keep or turn its order raises
``NeedsValue``; what is made of several is ``joined``. Whole parts are drawn where they are few.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, copysign, floor, isnan  # by name: inside a block ``math`` has others
from typing import Any, cast

import numpy as np

from specverify.intercept.unknowns.arithmetic import (
    Operand,
    added,
    apart,
    divided,
    exponential,
    logarithm,
    negative,
    of_two,
)
from specverify.intercept.unknowns.continuous import Continuous, Extreme, largest_of
from specverify.intercept.unknowns.finite import MOST_OUTCOMES
from specverify.intercept.unknowns.given import EVEN
from specverify.intercept.unknowns.joined import UNKNOWN, Joined, Unknown
from specverify.intercept.unknowns.steps import FLOOR, MonotoneStep, rounded
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.intercept.unknowns.wide import continuous_in_16_bits

MOST_UNEVEN = 64
"""Whole parts that are drawn where they are not as likely as each other: of the logarithm of a clamped uniform, say."""


def _of_any(rule: Callable[..., Any], of_numbers: Callable[..., Any], *operands: Any) -> Operand:
    """Return what a rule gives where an operand is random, else what NumPy makes of the numbers."""
    if any(isinstance(operand, UNKNOWN) for operand in operands):
        return cast("Operand", rule(*operands))
    with np.errstate(all="ignore"):
        return float(of_numbers(*map(np.float64, operands)))


def subtracted(left: Operand, right: Operand) -> Operand:
    """Return the difference."""
    return added(left, negative(right))


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


def maximum(left: Operand, right: Operand) -> Operand:
    """Return the larger one."""
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        if any(isinstance(each, Joined) or (isinstance(each, Extreme) and not each.largest) for each in (left, right)):
            return of_two("maximum", left, right)
        return largest_of((left, right))
    value, number = apart(left, right, "compared with each other")
    low, high = value.ends()
    if not low < number < high:
        return value if number <= low else number
    return value.at_least(number)


def size(value: Unknown) -> Operand:
    """Return the larger one of a number and its negative, which of the two is known if its sign is."""
    low, high = value.ends()
    return value if low >= 0 else negative(value) if high <= 0 else maximum(value, negative(value))


def minimum(left: Operand, right: Operand) -> Operand:
    """Return the smaller one."""
    return negative(maximum(negative(left), negative(right)))


def clip(value: Operand, low: float, high: float) -> Operand:
    """Return the number between two ends."""
    raised = _of_any(maximum, np.maximum, value, low)
    return float("nan") if isnan(low) else _of_any(minimum, np.minimum, raised, high)


def whole_parts_are_few(value: Unknown) -> bool:
    """Return whether a whole part is drawn. Where they are not as likely as each other, most are not worth a run."""
    low, high = value.ends()
    uneven = isinstance(value, Continuous) and not {step.name for step in value.steps} <= EVEN
    return high - low <= (MOST_UNEVEN if uneven else MOST_OUTCOMES)


def floored(value: Unknown) -> Operand:
    """Return the whole part: drawn where it is one of few, else a random number that has steps."""
    low, high = value.ends()
    if not whole_parts_are_few(value):
        return value.then(FLOOR)
    first, last = floor(low), max(floor(low), ceil(high) - 1)
    if high == floor(high) and value.below(high) is False:  # a clamp that is reached
        return float(high)
    return float(first + value.interval_of([float(bound) for bound in range(first + 1, last + 1)]))


def truncated(value: Unknown) -> Operand:
    """Return the whole part towards 0."""
    low, _ = value.ends()
    if low >= 0 or not value.below(0.0):
        return floored(value)
    return negative(_of_any(floored, np.floor, negative(value)))


def rounded_to_whole(value: Unknown) -> Operand:
    """Return the nearest whole number. Half of one goes to the even one: refused where that has a probability."""
    if isinstance(value, Joined):
        raise NeedsValue("rest-needed", "a random number that is made of several is rounded to the nearest whole one")
    for part in value.parts if isinstance(value, Extreme) else (value,):
        ends = (part.low, part.high) if isinstance(part, Continuous) and part.clamped else ()
        stepped = isinstance(part, Continuous) and part.in_steps
        if stepped or any(end % 1 == 1 / 2 for end in (ends if isinstance(part, Continuous) else (part,))):
            raise NeedsValue("rest-needed", "a random number that may be half of a whole one is rounded")
    return _of_any(floored, np.floor, added(value, 0.5))


def sign_of(value: Unknown) -> float:
    """Return -1, 0 or 1: drawn."""
    if value.equals(0.0):
        return 0.0
    return -1.0 if value.below(0.0) else 1.0


def with_sign(of: Operand, sign: Operand) -> Operand:
    """Return a number with the sign of another; that of one that is random is drawn."""
    below = sign.below(0.0) if isinstance(sign, UNKNOWN) else copysign(1.0, sign) < 0
    found = _of_any(size, np.absolute, of)
    return negative(found) if below else found


def floor_divided(left: Operand, right: Operand) -> Operand:
    """Return the whole part of a quotient."""
    return _of_any(floored, np.floor, divided(left, right))


def _rest(whole: Operand, left: Operand, right: Operand) -> Operand:
    """Return what is left of ``left`` when it is divided by ``right`` so many whole times."""
    if isinstance(whole, UNKNOWN) or isinstance(right, UNKNOWN):
        raise NeedsValue("rest-needed", "the rest of a division of random numbers is needed")
    return _of_any(subtracted, np.subtract, left, whole * right)


def heaviside(value: Operand, at_zero: Operand) -> Operand:
    """Return 1 above 0, 0 below, ``at_zero`` at 0: drawn."""
    if not isinstance(value, UNKNOWN):
        return at_zero if value == 0 else float(value > 0)
    sign = sign_of(value)
    return at_zero if sign == 0 else float(sign > 0)


def remainder(left: Operand, right: Operand) -> Operand:
    """Return the rest of a division, as Python has it."""
    return _rest(floor_divided(left, right), left, right)


def fmod(left: Operand, right: Operand) -> Operand:
    """Return the rest of a division, as C has it."""
    return _rest(_of_any(truncated, np.trunc, divided(left, right)), left, right)


def ceiled(value: Unknown) -> Operand:
    """Return the smallest whole number that is not below."""
    return negative(_of_any(floored, np.floor, negative(value)))


def by_rule(name: str, value: Unknown) -> Operand:
    """Return a function of ``monotone.RULES``."""
    return value.then(MonotoneStep(name))


def log_of_sum(left: Operand, right: Operand) -> Operand:
    """Return the logarithm of a sum of exponentials."""
    return logarithm(added(exponential(left), exponential(right)))
