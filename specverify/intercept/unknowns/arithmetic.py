"""Sums, products, powers and logarithms of random numbers that nobody has valued: what ``algebra`` is made of.

Operands are numbers and random numbers. What comes out is a random number, or a number where no chance is left in it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign, inf, isfinite, isinf, isnan, log  # by name: inside a block ``math`` has others
from typing import Any, TypeAlias

import numpy as np

from specverify.intercept.unknowns.continuous import Continuous, Extreme
from specverify.intercept.unknowns.given import drawn, few
from specverify.intercept.unknowns.joined import UNKNOWN, Joined, Unknown, joined
from specverify.intercept.unknowns.steps import EXP, LOG, plus, power, times
from specverify.intercept.unknowns.uniform import NeedsValue

Operand: TypeAlias = Continuous | Extreme | Joined | float


def _of_number(function: Callable[[float], Any], value: float) -> float:
    with np.errstate(all="ignore"):
        return float(function(value))


# Sums and products


def apart(left: Operand, right: Operand, what: str) -> tuple[Unknown, float]:
    """Return the random number and the other one; refuses two random ones."""
    value, number = (left, right) if isinstance(left, UNKNOWN) else (right, left)
    if isinstance(number, UNKNOWN) or not isinstance(value, UNKNOWN):
        raise NeedsValue("order-of-joined", f"random numbers are {what}")
    return value, number


def of_two(name: str, left: Unknown, right: Unknown) -> Operand:
    """Return what is made of two random numbers; nothing is left of one and minus itself."""
    if name == "add" and right == left.then(times(-1.0)):
        return 0.0
    if name == "add" and left == right:
        return left.then(times(2.0))
    if name in _OF_ONE and (few(left) or few(right)):
        return _OF_ONE[name](drawn(left), right if few(left) else drawn(right))
    return joined(name, left, right)


def _sign(value: Unknown, what: str) -> float:
    """Return the sign of a random number; refuses one whose sign is not known."""
    low, high = value.ends()
    if low < 0 < high:
        raise NeedsValue("unknown-sign", f"{what} a random number of unknown sign")
    return 1.0 if low >= 0 else -1.0


def added(left: Operand, right: Operand) -> Operand:
    """Return the sum."""
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        return of_two("add", left, right)
    value, number = apart(left, right, "added or subtracted")
    return value.then(plus(number)) if isfinite(number) else number


def negative(value: Operand) -> Operand:
    """Return minus a number."""
    return value.then(times(-1.0)) if isinstance(value, UNKNOWN) else -value


def multiplied(left: Operand, right: Operand) -> Operand:
    """Return the product."""
    if isinstance(left, UNKNOWN) and left == right:
        return square(left)
    if isinstance(left, UNKNOWN) and isinstance(right, UNKNOWN):
        return of_two("multiply", left, right)
    value, number = apart(left, right, "multiplied")
    if 0 < abs(number) < inf:
        return value.then(times(number))
    return number if isnan(number) else number * _sign(value, f"{number} is multiplied by")


def divided(left: Operand, right: Operand) -> Operand:
    """Return the quotient."""
    if isinstance(right, UNKNOWN):
        if isinstance(right, Joined) and right == Joined("add", right.operands) and left in right.operands:
            rest = right.operands[right.operands[0] == left]
            return divided(1.0, added(divided(rest, left), 1.0))  # in which each number stands once
        sign = _sign(right, "a number is divided by")
        upside_down = right.then(times(sign)).then(power(-1.0)).then(times(sign))
        return multiplied(upside_down, left)
    if right == 0 and isinstance(left, UNKNOWN):
        return copysign(inf, right) * _sign(left, "0 divides")
    return multiplied(left, 1.0 / right)


_OF_ONE: dict[str, Callable[[Operand, Operand], Operand]] = {"add": added, "multiply": multiplied}
"""What is made of one random number where another one is drawn."""


# Powers and logarithms


def raised(base: Operand, exponent: Operand) -> Operand:
    """Return a power."""
    if isinstance(base, UNKNOWN):
        if isinstance(exponent, UNKNOWN):
            return exponential(multiplied(exponent, logarithm(base)))
        if isinf(exponent):
            return _to_infinity(base, exponent)
        if exponent == 0 or isnan(exponent):
            return 1.0 if exponent == 0 else exponent
        if base.ends()[1] <= 0 and exponent % 1 == 0:
            turned = base.then(times(-1.0)).then(power(exponent))
            return turned if exponent % 2 == 0 else negative(turned)
        return _nonnegative(base, "a power is taken of").then(power(exponent))
    if not 0 < base < inf:
        raise NeedsValue("unknown-sign", f"{base} is raised to a random power")
    return exponential(multiplied(exponent, log(base)))


def _to_infinity(base: Unknown, exponent: float) -> float:
    low, high = base.ends()
    if not (low >= 0 and high <= 1) and not low >= 1:
        raise NeedsValue(
            "unknown-sign", "a random number that may be below 1 or above it is raised to an infinite power"
        )
    return inf if (exponent > 0) == (low >= 1) else 0.0


def _nonnegative(value: Unknown, what: str) -> Unknown:
    if value.ends()[0] < 0:
        raise NeedsValue("unknown-sign", f"{what} a random number of unknown sign, or below 0")
    return value


def square(value: Unknown) -> Operand:
    """Return the square of a number whose sign is known."""
    return value.then(times(_sign(value, "a square is taken of"))).then(power(2.0))


def logarithm(value: Operand) -> Operand:
    """Return the logarithm."""
    if isinstance(value, UNKNOWN):
        return _nonnegative(value, "a logarithm is taken of").then(LOG)
    return _of_number(np.log, value)


def exponential(value: Operand) -> Operand:
    """Return the exponential function."""
    return value.then(EXP) if isinstance(value, UNKNOWN) else _of_number(np.exp, value)
