"""The table of comparisons: of random numbers with numbers and with each other, and questions to one number.

Two random numbers that race are compared by their race.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from specverify.intercept.refusals import NeedsValue, tried
from specverify.intercept.symbolic.algebra import Operand
from specverify.intercept.symbolic.continuous import Continuous, Extreme
from specverify.intercept.symbolic.elementwise import applied
from specverify.intercept.symbolic.given import drawn, few
from specverify.intercept.symbolic.joined import SYMBOLIC, Joined, Symbolic
from specverify.intercept.symbolic.large import crossing
from specverify.intercept.symbolic.primitive import Blank, Family, Primitive, Result, table
from specverify.intercept.symbolic.races import winner


def answered(name: str, *operands: Any, place: str = "") -> bool:
    """Return the answer to a question of ``COMPARISONS``; of numbers alone what NumPy says.

    ``place`` is the line that asks, if it is not the one that is running.
    """
    if any(isinstance(operand, SYMBOLIC) for operand in operands):
        given = (each if isinstance(each, SYMBOLIC) else float(each) for each in operands)
        return bool(COMPARISONS[name].scalar(*given, place=place))  # type: ignore[operator]  # none is blank
    with np.errstate(all="ignore"):
        return bool(getattr(np, name)(*map(np.float64, operands)))


def result(name: str, *operands: Any) -> Any:
    """Return what an operation gives, or the answer to a question."""
    return answered(name, *operands) if name in COMPARISONS else applied(name, *operands)


def _less(left: Operand, right: Operand, *, place: str, or_equal: bool = False) -> bool:
    if isinstance(left, SYMBOLIC):
        if isinstance(right, SYMBOLIC):
            return _behind(left, right, place, or_equal=or_equal)
        return left.below(right, place, or_equal=or_equal)
    if math.isnan(left) or not isinstance(right, SYMBOLIC):
        return False
    return not right.below(left, place, or_equal=not or_equal)


def _equal(left: Operand, right: Operand, *, place: str) -> bool:
    if isinstance(left, SYMBOLIC) and isinstance(right, SYMBOLIC) and left != right and (few(left) or few(right)):
        left, right = drawn(left), right if few(left) else drawn(right)
    if isinstance(left, SYMBOLIC) and isinstance(right, SYMBOLIC):
        return left == right or _same(left, right, place)
    value, number = (left, right) if isinstance(left, SYMBOLIC) else (right, left)
    return isinstance(value, SYMBOLIC) and value.equals(number, place)  # type: ignore[arg-type]  # one is a number


def _behind(left: Symbolic, right: Symbolic, place: str, *, or_equal: bool) -> bool:
    """Return whether one random number is below another: by which is the largest, or smallest, of all their parts."""
    if left == right:
        return or_equal
    if few(left) or few(right):
        return _less(drawn(left), right if few(left) else drawn(right), place=place, or_equal=or_equal)
    try:
        with tried():
            return _ahead(left, right, place, or_equal=or_equal)
    except NeedsValue as no_race:
        apart = applied("subtract", left, right)
        if not isinstance(apart, Joined) or any(uniform.known.raced for uniform in apart.uniforms()):
            raise no_race.again() from None
        return apart.below(0.0, place, or_equal=or_equal)


def _ahead(left: Symbolic, right: Symbolic, place: str, *, or_equal: bool) -> bool:
    """Return the same by the race of all their parts. Raises ``NeedsValue`` where they are none."""
    largest = _of_largest(left, right)
    mine, its = _parts(left), _parts(right)
    everything = list(dict.fromkeys((*mine, *its)))
    result = everything[winner(everything, largest=largest, first_of_ties=False, place=place)]
    inside, beside = (its, mine) if largest else (mine, its)
    return result in inside and (or_equal or result not in beside)


def _same(left: Symbolic, right: Symbolic, place: str) -> bool:
    """Return whether two random numbers are one: the largest of both, if they have parts in common."""
    if isinstance(left, Joined) or isinstance(right, Joined):
        apart = applied("subtract", left, right)
        return bool(apart.equals(0.0, place) if isinstance(apart, Joined) else apart == 0)
    mine, its = _parts(left), _parts(right)
    if not set(mine) & set(its):
        if any(isinstance(part, Continuous) and (part.clamped or part.in_steps) for part in (*mine, *its)):
            raise NeedsValue("equal-numbers", "random numbers that may have one value are compared with each other")
        return False
    everything = list(dict.fromkeys((*mine, *its)))
    result = everything[winner(everything, largest=_of_largest(left, right), first_of_ties=False, place=place)]
    return result in mine and result in its


def _of_largest(left: Symbolic, right: Symbolic) -> bool:
    kinds = {value.largest for value in (left, right) if isinstance(value, Extreme)}
    if any(isinstance(value, Extreme) and value.rank for value in (left, right)):
        raise NeedsValue(
            "order-of-joined", "one at a place of the order of random numbers is compared with another random number"
        )
    if len(kinds) > 1:
        raise NeedsValue(
            "order-of-joined", "the largest of some random numbers is compared with the smallest of others"
        )
    return kinds != {False}


def _parts(value: Symbolic) -> tuple[Continuous | Joined | float, ...]:
    return value.parts if isinstance(value, Extreme) else (value,)


def _compare(name: str, rule: Callable[..., Any], vector: Blank | Callable[..., Any], **more: Any) -> Primitive:
    """Return the row of a comparison of two numbers."""
    return Primitive(name, Family.COMPARISON, rule, vector, getattr(np, name), Result.BOOLS, **more)


def _ask(name: str, rule: Callable[..., Any], **more: Any) -> Primitive:
    """Return the row of a question to one number."""
    return Primitive(name, Family.QUESTION, rule, _ONE_BY_ONE, getattr(np, name), Result.BOOLS, **more)


_ONE_BY_ONE = Blank("the answer is drawn for each element of a noise vector")
COMPARISONS = table(
    (
        _compare("less", _less, crossing, torch=("lt",), jax=("lt", "lt_to"), python=("lt",)),
        _compare("less_equal", partial(_less, or_equal=True), crossing,
                 torch=("le",), jax=("le", "le_to"), python=("le",)),
        _compare("greater", lambda left, right, place: _less(right, left, place=place), crossing,
                 torch=("gt",), jax=("gt",), python=("gt",)),
        _compare("greater_equal", lambda left, right, place: _less(right, left, place=place, or_equal=True), crossing,
                 torch=("ge",), jax=("ge",), python=("ge",)),
        _compare("equal", _equal, _ONE_BY_ONE, torch=("eq",), jax=("eq", "eq_to"), python=("eq",)),
        _compare("not_equal", lambda left, right, place: not _equal(left, right, place=place), _ONE_BY_ONE,
                 torch=("ne",), jax=("ne",), python=("ne",)),
    ),
    (
        _ask("signbit", lambda value, place: value.below(0.0, place), torch=("signbit",)),
        _ask("isnan", lambda value, place: False, torch=("isnan",), math=("isnan",)),
        _ask("isinf", lambda value, place: False, torch=("isinf",), math=("isinf",)),
        _ask("isfinite", lambda value, place: True, math=("isfinite",)),
        _ask("logical_not", lambda value, place: value.equals(0.0, place)),
    ),
)  # fmt: skip
"""By name. The vector rule of a comparison is that of one number with very many bounds."""
