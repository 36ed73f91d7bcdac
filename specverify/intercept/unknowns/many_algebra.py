"""What can be done with many random numbers at once: ``algebra`` in arrays.

An operation is known here if it takes every random number of an array to a random number or to a number. Otherwise it
raises ``RuleDeclined``, and is done element by element, where it is answered or refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specverify.intercept.refusals import RuleDeclined
from specverify.intercept.unknowns.many import Many
from specverify.intercept.unknowns.many_steps import EXPS, LOGS, Steps
from specverify.intercept.unknowns.monotone import RULES


def applied_to_many(name: str, *operands: Any) -> Many:
    """Return what an operation of ``algebra.ALGEBRA`` gives of arrays, one of which at least is a ``Many``.

    Raises ``RuleDeclined`` for what is not known here.
    """
    if name not in MANY:
        raise RuleDeclined(f"there is no rule for {name} of noise vectors")
    shape = np.broadcast_shapes(*(each.shape if isinstance(each, Many) else np.shape(each) for each in operands))
    with np.errstate(all="ignore"):
        return MANY[name](*(_spread(operand, shape) for operand in operands))


def _spread(operand: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(operand, Many):
        return operand if operand.shape == shape else operand.taken(lambda array: np.broadcast_to(array, shape))
    return np.asarray(operand, dtype=np.float64)


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


def _add(left: Any, right: Any) -> Many:
    value, number = _apart(left, right)
    finite = np.isfinite(number)
    return _numbers(value, ~finite, number, lambda found: found + number).then(Steps("plus", _where(finite, number, 0)))


def _negative(value: Many) -> Many:
    return value._replace(numbers=-value.numbers).then(Steps("times", -1.0))


def _sign(value: Many) -> float:
    """Return the sign of the random numbers. Raises ``RuleDeclined`` where it is not one for all of them."""
    low, high = value.ends()
    if np.all(low >= 0):
        return 1.0
    if np.all(high <= 0):
        return -1.0
    raise RuleDeclined("the sign of the numbers of a noise vector is not one for all")


def _multiply(left: Any, right: Any) -> Many:
    value, number = _apart(left, right)
    ordinary = (np.abs(number) > 0) & (np.abs(number) < np.inf)
    gone = number if ordinary.all() else number * _sign(value)
    found = _numbers(value, ~ordinary, gone, lambda numbers: numbers * number)
    return found.then(Steps("times", _where(ordinary, number, 1.0)))


def _divide(left: Any, right: Any) -> Many:
    if isinstance(right, Many):
        if isinstance(left, Many):
            raise RuleDeclined("two noise vectors are divided")
        return _multiply(_reciprocal(right), left)
    zero = np.equal(right, 0)
    if not zero.any():
        return _multiply(left, 1.0 / right)
    infinite = np.copysign(np.inf, right) * _sign(left)
    found = _numbers(left, zero, infinite, lambda numbers: numbers / right)
    return found.then(Steps("times", np.where(zero, 1.0, 1.0 / right)))


def _reciprocal(value: Many) -> Many:
    sign = _sign(value)
    turned = value._replace(numbers=sign / value.numbers).then(Steps("times", sign)).then(Steps("power", -1.0))
    return turned._replace(numbers=turned.numbers * sign).then(Steps("times", sign))


def _powered(base: Any, exponent: Any) -> Many:
    if isinstance(base, Many):
        if isinstance(exponent, Many) or not np.all(np.isfinite(exponent) & np.not_equal(exponent, 0)):
            raise RuleDeclined("an exponent is random, 0 or infinite")
        return _nonnegative(base)._replace(numbers=base.numbers**exponent).then(Steps("power", exponent))
    if not np.all((base > 0) & (base < np.inf)):
        raise RuleDeclined("a random power of a number that is not positive")
    return _exp(_multiply(exponent, np.log(base)))


def _nonnegative(value: Many) -> Many:
    if not np.all(value.ends()[0] >= 0):
        raise RuleDeclined("a noise vector has numbers below 0")
    return value


def _log(value: Many) -> Many:
    return _nonnegative(value)._replace(numbers=np.log(value.numbers)).then(LOGS)


def _exp(value: Many) -> Many:
    return value._replace(numbers=np.exp(value.numbers)).then(EXPS)


def _by_rule(name: str, value: Many) -> Many:
    return value._replace(numbers=RULES[name].of(value.numbers)).then(Steps(name))


def _maximum(left: Any, right: Any) -> Many:
    value, number = _apart(left, right)
    low, high = value.ends()
    over = np.asarray(number >= high)
    found = _numbers(value, over, number, lambda numbers: np.maximum(numbers, number))
    return (
        found if np.all(number <= low) else found._replace(low=np.maximum(value.low, np.where(over, -np.inf, number)))
    )


def _minimum(left: Any, right: Any) -> Many:
    value, number = _apart(left, right)
    return _negative(_maximum(_negative(value), -number))


def _clip(value: Many, low: Any, high: Any) -> Many:
    return _minimum(_maximum(value, low), high)


MANY: dict[str, Callable[..., Many]] = {
    "add": _add,
    "subtract": lambda left, right: _add(left, _negative(right) if isinstance(right, Many) else -right),
    "multiply": _multiply,
    "divide": _divide,
    "negative": _negative,
    "positive": lambda value: value,
    "reciprocal": _reciprocal,
    "power": _powered,
    "sqrt": lambda value: _powered(value, np.float64(0.5)),
    "log": _log,
    "log2": lambda value: _multiply(_log(value), np.float64(1 / math.log(2))),
    "log10": lambda value: _multiply(_log(value), np.float64(1 / math.log(10))),
    "log1p": lambda value: _log(_add(value, np.float64(1.0))),
    "exp": _exp,
    "maximum": _maximum,
    "minimum": _minimum,
    "clip": _clip,
    **{name: partial(_by_rule, name) for name in RULES},
}
"""What is done in arrays, by its name in ``ALGEBRA``."""
