"""The table of operations on elements: for each the rules of one number, of a noise vector and of outcomes.

``applied`` and ``applied_to_many`` are the only callers of these rules. To add a function that keeps the order of
numbers, write its ``steps.Rule`` and one row here.

What an operation gave of a random number of which nothing is known, for all that are computed alike.

A run of an enumeration computes what the run before it did, on other numbers: of a fresh number the chain of steps is
all that matters, so it is worked out once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.intercept.refusals import Declined, NeedsValue, RuleDeclined, is_declined
from specverify.intercept.symbolic import algebra, vectors
from specverify.intercept.symbolic.algebra import found_before
from specverify.intercept.symbolic.deferred import Deferred
from specverify.intercept.symbolic.joined import SYMBOLIC, Symbolic
from specverify.intercept.symbolic.primitive import Blank, Family, Primitive, Result, Rounding, Rule, table
from specverify.intercept.symbolic.vectors import Many
from specverify.intercept.unpatched import log

# Elementwise


_NOT_REMEMBERED = Declined("the operation may draw, or ask what is known of a number")
LOG_2, LOG_10 = log(2), log(10)

# Why a column is blank

_ROUNDS = Blank("libraries round it differently: each computes it of an outcome that was drawn")
_DRAWN_EACH = Blank("the answer is drawn for each element of a noise vector")
_TWO_RANDOM = Blank("an element of a noise vector is drawn, or meets a number by its sign")


# Constructors of families


class _Basis(NamedTuple):
    """What functions that are made of others are written in: in scalars, and in noise vectors."""

    add: Rule
    multiply: Rule
    divide: Rule
    negative: Rule
    log: Rule
    exp: Rule
    power: Rule


_SCALARS = _Basis(algebra.added, algebra.multiplied, algebra.divided, algebra.negative,
                  algebra.logarithm, algebra.exponential, algebra.raised)  # fmt: skip
_VECTORS = _Basis(vectors.add, vectors.multiply, vectors.divide, vectors.negative,
                  vectors.log, vectors.exp, vectors.powered)  # fmt: skip


def _exact(name: str, scalar: Rule, vector: Rule | Blank, **more: Any) -> Primitive:
    """Return the row of an operation that makes whole numbers of whole numbers, and rounds in one way in floats."""
    return Primitive(name, Family.ARITHMETIC, scalar, vector, getattr(np, name), **more)


def _composed(name: str, formula: Callable[[_Basis, Any], Any], **more: Any) -> Primitive:
    """Return the row of a function of one number that is written in a basis, once for scalars and vectors."""
    rules = partial(formula, _SCALARS), partial(formula, _VECTORS)
    return Primitive(name, Family.ARITHMETIC, *rules, _ROUNDS, Result.FLOATS, **more)


def _smooth(name: str, **more: Any) -> Primitive:
    """Return the row of a function that has a rule of its own in ``steps.RULES``."""
    rules = partial(algebra.by_rule, name), partial(vectors.by_rule, name)
    return Primitive(name, Family.ARITHMETIC, *rules, _ROUNDS, Result.FLOATS, pure=True, **more)


def _clamp(name: str, scalar: Rule, vector: Rule, **more: Any) -> Primitive:
    """Return the row of an operation that gives a number a positive probability."""
    return Primitive(name, Family.CLAMP, scalar, vector, getattr(np, name), **more)


def _whole_part(name: str, scalar: Rule, **more: Any) -> Primitive:
    """Return the row of a whole part or a sign."""
    return Primitive(name, Family.WHOLE_PART, scalar, _DRAWN_EACH, _ROUNDS, **more)


ELEMENTWISE = table(
    (
        _exact("add", algebra.added, vectors.add, pure=True,
               torch=("add",), jax=("add", "add_any"), python=("add",)),
        _exact("subtract", algebra.subtracted, vectors.subtract, pure=True,
               torch=("sub",), jax=("sub",), python=("sub",)),
        _exact("multiply", algebra.multiplied, vectors.multiply, pure=True, rounding=Rounding.RESULT,
               torch=("mul",), jax=("mul",), python=("mul",)),
        Primitive("divide", Family.ARITHMETIC, algebra.divided, vectors.divide, _ROUNDS, Result.FLOATS,
                  Rounding.RESULT, pure=True, torch=("div",), jax=("div",), python=("truediv",)),
        _exact("negative", algebra.negative, vectors.negative, pure=True,
               torch=("neg",), jax=("neg",), python=("neg",)),
        _exact("positive", lambda value: value, lambda value: value, python=("pos",)),
        _composed("reciprocal", lambda x, value: x.divide(1.0, value), pure=True, torch=("reciprocal",)),
        _exact("absolute", algebra.size, _TWO_RANDOM, torch=("abs",), jax=("abs",), python=("abs",)),
        Primitive("fabs", Family.ARITHMETIC, algebra.size, _TWO_RANDOM, _ROUNDS, math=("fabs",)),
        Primitive("power", Family.ARITHMETIC, algebra.raised, vectors.powered, _ROUNDS, pure=True,
                  torch=("pow",), jax=("pow",), math=("pow",), python=("pow",)),
        Primitive("float_power", Family.ARITHMETIC, algebra.raised, vectors.powered, _ROUNDS),
        _exact("square", algebra.square, vectors.square, pure=True, jax=("square",)),  # torch computes a power
        Primitive("copysign", Family.ARITHMETIC, algebra.with_sign, _TWO_RANDOM, _ROUNDS, rounding=Rounding.RESULT,
                  torch=("copysign",), math=("copysign",)),
        Primitive("floor_divide", Family.ARITHMETIC, algebra.floor_divided, _DRAWN_EACH, np.floor_divide,
                  rounding=Rounding.RESULT, torch=("floor_divide",), python=("floordiv",)),
        _exact("remainder", algebra.remainder, _DRAWN_EACH, torch=("remainder",), python=("mod",)),
        Primitive("fmod", Family.ARITHMETIC, algebra.fmod, _DRAWN_EACH, _ROUNDS, torch=("fmod",), math=("fmod",)),
    ),
    (
        _composed("log", lambda x, value: x.log(value), pure=True, torch=("log",), jax=("log",), math=("log",)),
        _composed("log2", lambda x, value: x.multiply(x.log(value), 1 / LOG_2), torch=("log2",), math=("log2",)),
        _composed("log10", lambda x, value: x.multiply(x.log(value), 1 / LOG_10), torch=("log10",), math=("log10",)),
        _composed("log1p", lambda x, value: x.log(x.add(value, 1.0)), pure=True,
                  torch=("log1p",), jax=("log1p",), math=("log1p",)),
        _composed("exp", lambda x, value: x.exp(value), pure=True, torch=("exp",), jax=("exp",), math=("exp",)),
        _composed("exp2", lambda x, value: x.exp(x.multiply(value, LOG_2)),
                  torch=("exp2",), jax=("exp2",), math=("exp2",)),
        _composed("expm1", lambda x, value: x.add(x.exp(value), -1.0),
                  torch=("expm1",), jax=("expm1",), math=("expm1",)),
        _composed("sqrt", lambda x, value: x.power(value, 0.5), pure=True,
                  torch=("sqrt",), jax=("sqrt",), math=("sqrt",)),
        _composed("rsqrt", lambda x, value: x.power(value, -0.5), torch=("rsqrt",), jax=("rsqrt",),
                  numbers=lambda value: 1 / np.sqrt(value)),
        _composed("cbrt", lambda x, value: x.power(value, 1 / 3), jax=("cbrt",), math=("cbrt",)),
        _composed("sigmoid", lambda x, value: x.divide(1.0, x.add(x.exp(x.negative(value)), 1.0)),
                  torch=("sigmoid",), jax=("logistic",), numbers=lambda value: 1 / (1 + np.exp(-value))),
        _composed("logit", lambda x, value: x.negative(x.log(x.add(x.divide(1.0, value), -1.0))),
                  torch=("logit", "special_logit"), numbers=lambda value: np.log(value / (1 - value))),
        _composed("tanh", lambda x, value: x.add(
            x.multiply(x.divide(1.0, x.add(x.exp(x.multiply(value, -2.0)), 1.0)), 2.0), -1.0),
                  torch=("tanh",), jax=("tanh",), math=("tanh",)),
        Primitive("logaddexp", Family.ARITHMETIC, algebra.log_of_sum, Blank("two noise vectors are added up"),
                  _ROUNDS, torch=("logaddexp",)),
        _smooth("arctan", torch=("atan",), jax=("atan",), math=("atan",)),
    ),
    (
        _clamp("maximum", algebra.maximum, vectors.maximum, pure=True,
               torch=("maximum", "clamp_min"), jax=("max",)),
        _clamp("minimum", algebra.minimum, vectors.minimum, pure=True,
               torch=("minimum", "clamp_max"), jax=("min",)),
        _clamp("fmax", algebra.maximum, vectors.maximum, torch=("fmax",)),
        _clamp("fmin", algebra.minimum, vectors.minimum, torch=("fmin",)),
        _clamp("clip", algebra.clip, vectors.clip, torch=("clamp",)),
    ),
    (
        _whole_part("floor", algebra.floored, torch=("floor",), jax=("floor",)),
        _whole_part("ceil", algebra.ceiled, torch=("ceil",), jax=("ceil",)),
        _whole_part("trunc", algebra.truncated, torch=("trunc",)),
        _whole_part("rint", algebra.rounded_to_whole, torch=("round",), jax=("round",)),
        _whole_part("sign", algebra.sign_of, torch=("sign", "sgn"), jax=("sign",)),
        _whole_part("heaviside", algebra.heaviside, torch=("heaviside",)),
    ),
)  # fmt: skip
"""By name."""


def applied(name: str, *operands: Any) -> Any:
    """Return what an operation of the table gives; of numbers alone what NumPy makes of them, without warnings."""
    row, random = ELEMENTWISE[name], [isinstance(operand, SYMBOLIC) for operand in operands]
    if True in random:
        given = tuple([each if lazy else float(each) for each, lazy in zip(operands, random, strict=True)])
        result = found_before(row.scalar, given) if row.pure else _NOT_REMEMBERED  # type: ignore[arg-type]
        return row.scalar(*given) if is_declined(result) else result  # type: ignore[operator]  # none is blank
    with np.errstate(all="ignore"):
        return (row.numbers or getattr(np, name))(*map(np.float64, operands)).item()


def whole_part(name: str, element: Symbolic, place: str = "") -> Any:
    """Return a whole part of a random number: drawn when the value is needed, where it is one of few.

    A refusal then names ``place``, the line that asked for the whole part.
    """

    def drawn() -> Any:
        try:
            return applied(name, element)
        except NeedsValue as refused:
            raise refused.at(place) from None

    return Deferred(drawn) if algebra.whole_parts_are_few(element) else applied(name, element)


def applied_to_many(name: str, *operands: Any) -> Many:
    """Return what an operation of the table gives of arrays, one of which at least is a ``Many``.

    Raises ``RuleDeclined`` where the row has no rule of vectors.
    """
    rule = ELEMENTWISE[name].vector if name in ELEMENTWISE else Blank("there is no rule for it")
    if isinstance(rule, Blank):
        raise RuleDeclined(f"{name} of noise vectors: {rule.reason}")
    shape = np.broadcast_shapes(*(each.shape if isinstance(each, Many) else np.shape(each) for each in operands))
    with np.errstate(all="ignore"):
        result: Many = rule(*(_spread(operand, shape) for operand in operands))
    return result


def _spread(operand: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(operand, Many):
        return operand if operand.shape == shape else operand.taken(lambda array: np.broadcast_to(array, shape))
    return np.asarray(operand, dtype=np.float64)
