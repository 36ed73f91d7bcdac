"""What can be done with many random numbers at once: the vector rules of the table of ``elementwise``.

A rule takes every random number of an array to a random number or to a number. Otherwise it
raises ``RuleDeclined``, and is done element by element, where it is answered or refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.unknowns.many import Many
from specverify.intercept.unknowns.many_steps import EXPS, LOGS, Steps
from specverify.intercept.unknowns.monotone import RULES


def _apart(left: Any, right: Any) -> tuple[Many, Any]:
    value, number = (left, right) if isinstance(left, Many) else (right, left)
    if isinstance(number, Many):
        raise RuleDeclined("two noise vectors meet")
    return value, number


def _numbers(value: Many, where: Any, numbers: Any, function: Callable[[Any], Any]) -> Many:
    """Return the array with ``numbers`` for its random ones ``where``, and its numbers as ``function`` makes them."""
    found = np.where(value.random, numbers, function(value.numbers))
    return value._replace(ids=np.where(where, -1, value.ids), numbers=found)


def _where(condition: Any, one: Any, other: Any) -> Any:
    """Return ``np.where``, and a float where all elements are one."""
    return one if np.ndim(one) == 0 and np.all(condition) else np.where(condition, one, other)


def add(left: Any, right: Any) -> Many:
    """Return the sum with numbers."""
    value, number = _apart(left, right)
    finite = np.isfinite(number)
    return _numbers(value, ~finite, number, lambda found: found + number).then(Steps("plus", _where(finite, number, 0)))


def negative(value: Many) -> Many:
    """Return minus the numbers."""
    return value._replace(numbers=-value.numbers).then(Steps("times", -1.0))


def _sign(value: Many) -> float:
    """Return the sign of the random numbers. Raises ``RuleDeclined`` where it is not one for all of them."""
    low, high = value.ends()
    if np.all(low >= 0):
        return 1.0
    if np.all(high <= 0):
        return -1.0
    raise RuleDeclined("the sign of the numbers of a noise vector is not one for all")


def multiply(left: Any, right: Any) -> Many:
    """Return the product with numbers."""
    value, number = _apart(left, right)
    ordinary = (np.abs(number) > 0) & (np.abs(number) < np.inf)
    gone = number if ordinary.all() else number * _sign(value)
    found = _numbers(value, ~ordinary, gone, lambda numbers: numbers * number)
    return found.then(Steps("times", _where(ordinary, number, 1.0)))


def divide(left: Any, right: Any) -> Many:
    """Return the quotient with numbers."""
    if isinstance(right, Many):
        if isinstance(left, Many):
            raise RuleDeclined("two noise vectors are divided")
        return multiply(reciprocal(right), left)
    zero = np.equal(right, 0)
    if not zero.any():
        return multiply(left, 1.0 / right)
    infinite = np.copysign(np.inf, right) * _sign(left)
    found = _numbers(left, zero, infinite, lambda numbers: numbers / right)
    return found.then(Steps("times", np.where(zero, 1.0, 1.0 / right)))


def reciprocal(value: Many) -> Many:
    """Return one over numbers of one sign."""
    sign = _sign(value)
    turned = value._replace(numbers=sign / value.numbers).then(Steps("times", sign)).then(Steps("power", -1.0))
    return turned._replace(numbers=turned.numbers * sign).then(Steps("times", sign))


def powered(base: Any, exponent: Any) -> Many:
    """Return a power; the base or the exponent is random."""
    if isinstance(base, Many):
        if isinstance(exponent, Many) or not np.all(np.isfinite(exponent) & np.not_equal(exponent, 0)):
            raise RuleDeclined("an exponent is random, 0 or infinite")
        if np.all(base.ends()[1] <= 0) and np.ndim(exponent) == 0 and exponent % 1 == 0:
            turned = negative(base)._replace(numbers=base.numbers**exponent).then(Steps("power", exponent))
            return turned if exponent % 2 == 0 else negative(turned)._replace(numbers=turned.numbers)
        return _nonnegative(base)._replace(numbers=base.numbers**exponent).then(Steps("power", exponent))
    if not np.all((base > 0) & (base < np.inf)):
        raise RuleDeclined("a random power of a number that is not positive")
    return exp(multiply(exponent, np.log(base)))


def _nonnegative(value: Many) -> Many:
    if not np.all(value.ends()[0] >= 0):
        raise RuleDeclined("a noise vector has numbers below 0")
    return value


def log(value: Many) -> Many:
    """Return the logarithms."""
    return _nonnegative(value)._replace(numbers=np.log(value.numbers)).then(LOGS)


def exp(value: Many) -> Many:
    """Return the exponentials."""
    return value._replace(numbers=np.exp(value.numbers)).then(EXPS)


def by_rule(name: str, value: Many) -> Many:
    """Return a function of ``monotone.RULES``."""
    return value._replace(numbers=RULES[name].of(value.numbers)).then(Steps(name))


def maximum(left: Any, right: Any) -> Many:
    """Return the larger ones."""
    value, number = _apart(left, right)
    low, high = value.ends()
    over = np.asarray(number >= high)
    found = _numbers(value, over, number, lambda numbers: np.maximum(numbers, number))
    return (
        found if np.all(number <= low) else found._replace(low=np.maximum(value.low, np.where(over, -np.inf, number)))
    )


def minimum(left: Any, right: Any) -> Many:
    """Return the smaller ones."""
    value, number = _apart(left, right)
    return negative(maximum(negative(value), -number))


def clip(value: Many, low: Any, high: Any) -> Many:
    """Return the numbers between two ends."""
    return minimum(maximum(value, low), high)


def subtract(left: Any, right: Any) -> Many:
    """Return the difference."""
    return add(left, negative(right) if isinstance(right, Many) else -right)


def square(value: Many) -> Many:
    """Return the square, of numbers of one sign."""
    sign = _sign(value)
    return multiply(value, sign)._replace(numbers=value.numbers**2).then(Steps("power", 2.0))
