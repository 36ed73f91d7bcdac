"""The table of all operations on random numbers, with their rules and their names in each library.

A row is one operation. It has a rule for each kind of operand: ``scalar`` for one symbolic number, ``vector`` for a
noise vector, ``outcome`` for a draw, which is computed for all outcomes at once. A column without a rule holds a
``Blank`` with the reason. Front ends map the names of their library to rows, and have no rules of their own for these
operations.

``applied`` and ``applied_to_many`` are the only callers of the element-wise rules. To add a monotone function, write
its ``steps.Rule`` and one row here.

Results on a symbolic number whose interval is still (0, 1) are cached: the runs of an enumeration repeat a computation
on new numbers, and its result depends only on the chain of steps.

Comparisons are rows too: of symbolic numbers with numbers and with each other. Two noisy scores, such as logits with
Gumbel noise, are compared as in an argmax, by exponential clocks (``races``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from math import erfc, sqrt
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from specverify.intercept.cpython.patches import log, pi
from specverify.intercept.refusals import Declined, NeedsValue, RuleDeclined, is_declined, tried
from specverify.intercept.symbolic import algebra, rows, vectors
from specverify.intercept.symbolic.algebra import Operand, found_before
from specverify.intercept.symbolic.continuous import (
    SYMBOLIC,
    Continuous,
    Extreme,
    Joined,
    Symbolic,
    any_symbolic,
    drawn,
    few,
)
from specverify.intercept.symbolic.deferred import Count, Deferred, Product, Truth, is_open, known, number
from specverify.intercept.symbolic.large import Crossing, contests, crossing, lookup, totals
from specverify.intercept.symbolic.races import winner
from specverify.intercept.symbolic.steps import RULES
from specverify.intercept.symbolic.vectors import Many, joined

# Rows


class Family(Enum):
    """The kinds of operation in the table, such as arithmetic, comparison, reduction and sorting.

    The kind determines how the module that intercepts a library prepares the operands, before it applies the
    operation's rule.
    """

    ARITHMETIC = "arithmetic"
    CLAMP = "clamp"
    """Clamping: values at the bounds get positive probability. Not supported in 16 bits."""
    WHOLE_PART = "whole part"
    """Integer part, forced when its value is needed."""
    COMPARISON = "comparison"
    QUESTION = "question"
    """A predicate of one number, such as ``isnan``."""
    CHOICE = "choice"
    """Selection between elements; the rule gets the condition and the cases."""
    LOGIC = "logic"
    """Element-wise operation on bools."""
    REDUCTION = "reduction"
    """Reduction of a row to one element: ``rule(row, ask)``."""
    EXTREME = "extreme"
    """Maximum or minimum of a row, or its index: ``rule(row, ask)``."""
    SCAN = "scan"
    """Cumulative reduction: one result for each prefix of a row."""
    ORDER_ALONE = "order alone"
    """Operation on a row of which only the order is known: ``rule(row)``."""
    ORDERING = "ordering"
    """Values at some ranks of a row and their indices: ``rule(row, ask, argument, largest=..., stable=...)``."""
    LOOKUP = "lookup"
    """Index of a number among sorted bounds: ``rule(bounds, element, ask, right=...)``."""
    VIEW = "view"
    """The same elements in another shape: ``rule(move, arrays)``, where ``move`` applies the library's operation to
    indices."""
    SELECTION = "selection"
    """A copy of some elements; the rule is that of VIEW."""
    INSERTION = "insertion"
    """Elements of one array written into another; the rule is that of VIEW."""
    PADDING = "padding"
    """Elements between constants; the rule is that of VIEW."""
    ACCUMULATION = "accumulation"
    """Elements of one array combined with those of another at some of its places: ``rule(row, ask)`` for each place."""
    JOINING = "joining"
    """Concatenation; the rule is the NumPy function."""
    COPY = "copy"
    """A copy of all elements."""
    SHAPE = "shape"
    """An array of constants with the shape of another array, whose elements are not read."""


class Result(Enum):
    """How the dtype of an operation's result follows from its operands, for example "as the operands" or "bool"."""

    OPERANDS = "that of the operands"
    FLOATS = "floats, also of whole numbers"
    BOOLS = "bools"
    PLACES = "whole numbers"


class RoundedParts(Enum):
    """Which values an operation on 16-bit floats rounds: its operands and its result, its result alone, or none."""

    OPERANDS = "each operand, and the result"
    RESULT = "the result alone"
    NOTHING = "nothing"


class Blank(NamedTuple):
    """The mark of a missing rule in a row of the table, with the reason why there is no rule."""

    reason: str

    def declined(self, name: str) -> Declined:
        """Return ``Declined`` for the operation ``name``, with the reason why its rule is missing."""
        return Declined(f"{name}: {self.reason}")


Rule: TypeAlias = Callable[..., Any]


class Primitive(NamedTuple):
    """One operation of the table of primitives, with its rules. ``family`` is its kind.

    ``scalar``, ``vector`` and ``outcome`` are its rules for symbolic numbers, noise vectors and outcomes. ``result``
    determines the dtype of the result, and ``rounding`` what is rounded in 16 bits.
    """

    name: str
    """The NumPy name."""
    family: Family
    scalar: Rule | Blank
    vector: Rule | Blank
    outcome: Rule | Blank
    """A NumPy function whose result agrees bit by bit with every library."""
    result: Result = Result.OPERANDS
    rounding: RoundedParts = RoundedParts.OPERANDS
    pure: bool = False
    """Whether the scalar rule draws nothing and depends only on the chain of steps, so that its result can be cached.
    """
    torch: tuple[str, ...] = ()
    """Names in ``torch.ops.aten``."""
    jax: tuple[str, ...] = ()
    """Names of primitives of JAX."""
    math: tuple[str, ...] = ()
    """Names in Python's ``math``."""
    python: tuple[str, ...] = ()
    """Operators of Python, without underscores."""
    numbers: Rule | None = None
    """Function for concrete numbers; None: the NumPy function of that name."""


def table(*families: Iterable[Primitive]) -> dict[str, Primitive]:
    """Return the table of primitives: name -> primitive, for the primitives of all ``families``.

    Raises:
        ValueError: Two primitives have the same name, in this table or in a library.
    """
    every = [row for family in families for row in family]
    value = _one_each((row.name, row) for row in every)
    for library in ("torch", "jax", "math", "python"):
        spelled(value, library)
    return value


def spelled(named: Mapping[str, Primitive], library: str) -> dict[str, Primitive]:
    """Return the primitives of the table ``named`` by the names of their functions in a library.

    ``library`` is ``torch``, ``jax``, ``math`` or ``python``. A primitive may have several functions or none.
    """
    return _one_each((name, row) for row in named.values() for name in getattr(row, library))


def _one_each(pairs: Iterable[tuple[str, Primitive]]) -> dict[str, Primitive]:
    value: dict[str, Primitive] = {}
    for name, row in pairs:
        if name in value:
            raise ValueError(f"{name} is registered twice, by {value[name].name} and by {row.name}")
        value[name] = row
    return value


# Element-wise


_NOT_REMEMBERED = Declined("the operation may draw, or ask what is known of a number")
LOG_2, LOG_10 = log(2), log(10)

# Why a column is blank

_ROUNDS = Blank("libraries round it differently, so each outcome is followed and the library computes it")
_FOLLOWED = Blank("no rule is written, so each outcome is followed and the library computes it")
_DRAWN_EACH = Blank("the answer would have to be drawn for each element of the noise vector")
_TWO_RANDOM = Blank("the result depends on the sign of each element, which would have to be drawn")


# Constructors of families


class _Basis(NamedTuple):
    """The basic operations in which composite functions, such as a softplus, are written.

    Each field has the rule of one operation. There are two such sets of rules: for scalars and for noise vectors.
    """

    add: Rule
    multiply: Rule
    divide: Rule
    negative: Rule
    log: Rule
    exp: Rule
    power: Rule
    maximum: Rule
    minimum: Rule
    rule: Rule
    """``rule(name, value)`` applies a function of ``steps.RULES``."""


_SCALARS = _Basis(algebra.added, algebra.multiplied, algebra.divided, algebra.negative,
                  algebra.logarithm, algebra.exponential, algebra.raised,
                  algebra.maximum, algebra.minimum, algebra.by_rule)  # fmt: skip
_VECTORS = _Basis(vectors.add, vectors.multiply, vectors.divide, vectors.negative,
                  vectors.log, vectors.exp, vectors.powered,
                  vectors.maximum, vectors.minimum, vectors.by_rule)  # fmt: skip


def _exact(name: str, scalar: Rule, vector: Rule | Blank, **more: Any) -> Primitive:
    """Return the primitive ``name``, arithmetic such as ``add``: exact for integers, rounded once for floats.

    ``scalar`` and ``vector`` are its rules for symbolic numbers and noise vectors; ``more`` are further fields of this
    ``Primitive``.
    """
    return Primitive(name, Family.ARITHMETIC, scalar, vector, getattr(np, name), **more)


def _composed(name: str, formula: Callable[[_Basis, Any], Any], **more: Any) -> Primitive:
    """Return the primitive ``name``, a function of one number that ``formula`` computes from basic operations.

    ``formula(x, value)`` calls the operations ``x``, on scalars or on noise vectors. ``more`` are further fields of
    this ``Primitive``.
    """
    rules = partial(formula, _SCALARS), partial(formula, _VECTORS)
    return Primitive(name, Family.ARITHMETIC, *rules, _ROUNDS, Result.FLOATS, **more)


def _logit(x: _Basis, value: Any) -> Any:
    """Return ``log(v / (1 - v))`` for the number v = ``value`` in (0, 1).

    ``x`` has the basic operations, for scalars or for noise vectors.
    """
    return x.negative(x.log(x.add(x.divide(1.0, value), -1.0)))


NEARLY = 1e-6
"""Tolerance for float32 rounding of a number that is at most 1."""


def _between_0_and_1(x: _Basis, value: Any) -> Any:
    """Return ``value`` limited to [0, 1] if the value exceeds an end by rounding only; otherwise ``value`` unchanged.

    ``x`` has the basic operations, for scalars or for noise vectors.
    """
    low, high = value.ends()
    if np.any((high > 1) & (high <= 1 + NEARLY)):
        value = x.minimum(value, 1.0)
    return x.maximum(value, 0.0) if np.any((low < 0) & (low >= -NEARLY)) else value


def _half_way(x: _Basis, value: Any) -> Any:
    """Return the logit of ``(value + 1) / 2``, for a value in (-1, 1).

    The result is twice the inverse hyperbolic tangent of the value. ``x`` has the basic operations, for scalars or for
    noise vectors.
    """
    return _logit(x, _between_0_and_1(x, x.multiply(x.add(value, 1.0), 0.5)))


def _arcsine(x: _Basis, value: Any) -> Any:
    return x.rule("gudermann", x.multiply(_half_way(x, value), 0.5))


def _of_law(law: str, x: _Basis, value: Any) -> Any:
    """Return the quantile of the law named ``law`` in ``steps.RULES`` at the probability ``value``.

    ``x`` has the basic operations, for scalars or for noise vectors.
    """
    return x.rule(law, _logit(x, _between_0_and_1(x, value)))


def _by_law(law: str, x: _Basis, value: Any) -> Any:
    return x.rule(law, value)


def _smooth(name: str, **more: Any) -> Primitive:
    """Return the primitive ``name``, a monotone function with an entry in ``steps.RULES``.

    ``more`` are further fields of this ``Primitive``.
    """
    rules = partial(algebra.by_rule, name), partial(vectors.by_rule, name)
    return Primitive(name, Family.ARITHMETIC, *rules, _ROUNDS, Result.FLOATS, pure=True, **more)


def _clamp(name: str, scalar: Rule, vector: Rule, **more: Any) -> Primitive:
    """Return the primitive ``name``, a clamp, which gives its bound a positive probability.

    ``scalar`` is the rule for symbolic numbers, ``vector`` that for noise vectors; ``more`` are further fields.
    """
    return Primitive(name, Family.CLAMP, scalar, vector, getattr(np, name), **more)


def _whole_part(name: str, scalar: Rule, **more: Any) -> Primitive:
    """Return the primitive ``name``, a rounding to integers or a sign.

    ``scalar`` is the rule for a symbolic number; ``more`` are further fields of this ``Primitive``.
    """
    return Primitive(name, Family.WHOLE_PART, scalar, _DRAWN_EACH, _FOLLOWED, **more)


ELEMENTWISE = table(
    (
        _exact("add", algebra.added, vectors.add, pure=True,
               torch=("add",), jax=("add", "add_any"), python=("add",)),
        _exact("subtract", algebra.subtracted, vectors.subtract, pure=True,
               torch=("sub",), jax=("sub",), python=("sub",)),
        _exact("multiply", algebra.multiplied, vectors.multiply, pure=True, rounding=RoundedParts.RESULT,
               torch=("mul",), jax=("mul",), python=("mul",)),
        Primitive("divide", Family.ARITHMETIC, algebra.divided, vectors.divide, _ROUNDS, Result.FLOATS,
                  RoundedParts.RESULT, pure=True, torch=("div",), jax=("div",), python=("truediv",)),
        _exact("negative", algebra.negative, vectors.negative, pure=True,
               torch=("neg",), jax=("neg",), python=("neg",)),
        _exact("positive", lambda value: value, lambda value: value, python=("pos",)),
        _composed("reciprocal", lambda x, value: x.divide(1.0, value), pure=True, torch=("reciprocal",)),
        _exact("absolute", algebra.size, _TWO_RANDOM, torch=("abs",), jax=("abs",), python=("abs",)),
        Primitive("fabs", Family.ARITHMETIC, algebra.size, _TWO_RANDOM, _FOLLOWED, math=("fabs",)),
        Primitive("power", Family.ARITHMETIC, algebra.raised, vectors.powered, _ROUNDS, pure=True,
                  torch=("pow",), jax=("pow",), math=("pow",), python=("pow",)),
        Primitive("float_power", Family.ARITHMETIC, algebra.raised, vectors.powered, _ROUNDS),
        _exact("square", algebra.square, vectors.square, pure=True, jax=("square",)),  # torch computes a power
        Primitive("copysign", Family.ARITHMETIC, algebra.with_sign, _TWO_RANDOM, _FOLLOWED,
                  rounding=RoundedParts.RESULT, torch=("copysign",), math=("copysign",)),
        Primitive("floor_divide", Family.ARITHMETIC, algebra.floor_divided, _DRAWN_EACH, np.floor_divide,
                  rounding=RoundedParts.RESULT, torch=("floor_divide",), python=("floordiv",)),
        _exact("remainder", algebra.remainder, _DRAWN_EACH, torch=("remainder",), python=("mod",)),
        Primitive("fmod", Family.ARITHMETIC, algebra.fmod, _DRAWN_EACH, _FOLLOWED, torch=("fmod",), math=("fmod",)),
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
        _composed("logit", _logit,
                  torch=("logit", "special_logit"), numbers=lambda value: np.log(value / (1 - value))),
        _composed("tanh", lambda x, value: x.add(
            x.multiply(x.divide(1.0, x.add(x.exp(x.multiply(value, -2.0)), 1.0)), 2.0), -1.0),
                  torch=("tanh",), jax=("tanh",), math=("tanh",)),
        Primitive("ldexp", Family.ARITHMETIC, algebra.scaled, lambda value, by: vectors.multiply(value, np.exp2(by)),
                  _ROUNDS, Result.FLOATS, numbers=lambda value, by: value * np.exp2(by),
                  torch=("ldexp",), math=("ldexp",)),
        Primitive("logaddexp", Family.ARITHMETIC, algebra.log_of_sum,
                  Blank("sums of two noise vectors are not followed"), _ROUNDS, torch=("logaddexp",)),
        _smooth("arctan", torch=("atan",), jax=("atan",), math=("atan",)),
        _smooth("sinh", torch=("sinh",), jax=("sinh",), math=("sinh",)),
        _smooth("arcsinh", torch=("asinh",), jax=("asinh",), math=("asinh",)),
        _composed("arctanh", lambda x, value: x.multiply(_half_way(x, value), 0.5),
                  torch=("atanh",), jax=("atanh",), math=("atanh",)),
        _composed("tan", lambda x, value: _of_law("cauchy", x, x.add(x.multiply(value, 1 / pi), 0.5)),
                  torch=("tan",), jax=("tan",), math=("tan",)),
        _composed("arcsin", _arcsine, torch=("asin",), jax=("asin",), math=("asin",)),
        _composed("arccos", lambda x, value: x.add(x.negative(_arcsine(x, value)), pi / 2),
                  torch=("acos",), jax=("acos",), math=("acos",)),
        _smooth("erf", torch=("erf", "special_erf"), jax=("erf",), math=("erf",), numbers=RULES["erf"].of),
        _composed("erfc", lambda x, value: x.add(x.negative(x.rule("erf", value)), 1.0),
                  torch=("erfc", "special_erfc"), jax=("erfc",), math=("erfc",), numbers=np.vectorize(erfc)),
        _composed("erfinv", lambda x, value: x.multiply(x.rule("normal", _half_way(x, value)), 1 / sqrt(2)),
                  torch=("erfinv", "special_erfinv"), jax=("erf_inv",), numbers=RULES["erf"].inverse),
        _composed("ndtri", partial(_of_law, "normal"), torch=("special_ndtri",),
                  numbers=lambda value: RULES["erf"].inverse(2 * value - 1) * sqrt(2)),
        _composed("ndtr", lambda x, value: x.multiply(x.add(x.rule("erf", x.multiply(value, 1 / sqrt(2))), 1.0), 0.5),
                  torch=("special_ndtr",), numbers=lambda value: (RULES["erf"].of(value / sqrt(2)) + 1) / 2),
        _composed("degrees", lambda x, value: x.multiply(value, 180 / pi), math=("degrees",)),
        _composed("rad2deg", lambda x, value: x.multiply(value, 180 / pi), torch=("rad2deg",)),
        _composed("radians", lambda x, value: x.multiply(value, pi / 180), math=("radians",)),
        _composed("deg2rad", lambda x, value: x.multiply(value, pi / 180), torch=("deg2rad",)),
        *(_composed(f"{law}_of_logistic", partial(_by_law, law), numbers=RULES[law].of)
          for law in ("normal", "cauchy", "laplace")),
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
        _whole_part("floor", algebra.floored, torch=("floor",), jax=("floor",), python=("floor",)),
        _whole_part("ceil", algebra.ceiled, torch=("ceil",), jax=("ceil",), python=("ceil",)),
        _whole_part("trunc", algebra.truncated, torch=("trunc",), python=("trunc", "int")),
        _whole_part("rint", algebra.rounded_to_whole, torch=("round",), jax=("round",)),
        _whole_part("sign", algebra.sign_of, torch=("sign", "sgn"), jax=("sign",)),
        _whole_part("heaviside", algebra.heaviside, torch=("heaviside",)),
    ),
)  # fmt: skip
"""Name -> element-wise primitive."""


def applied(name: str, *operands: Any) -> Any:
    """Return the element-wise operation ``name`` of the table of primitives, applied to ``operands``.

    If all operands are plain numbers, NumPy computes it without warnings.
    """
    row, random = ELEMENTWISE[name], [isinstance(operand, SYMBOLIC) for operand in operands]
    if True in random:
        given = tuple([each if lazy else float(each) for each, lazy in zip(operands, random, strict=True)])
        result = found_before(row.scalar, given) if row.pure else _NOT_REMEMBERED  # type: ignore[arg-type]
        return row.scalar(*given) if is_declined(result) else result  # type: ignore[operator]  # none is blank
    with np.errstate(all="ignore"):
        return (row.numbers or getattr(np, name))(*map(np.float64, operands)).item()


def whole_part(name: str, element: Symbolic, place: str = "") -> Any:
    """Return the integer part ``name`` (floor, trunc, ...) of ``element``, a symbolic number.

    The result is an outcome that is drawn when it is read, or a symbolic integer if many values are possible. ``place``
    is the line that a later refusal names.
    """

    def drawn() -> Any:
        try:
            return applied(name, element)
        except NeedsValue as refused:
            raise refused.at(place) from None

    return Deferred(drawn) if algebra.whole_parts_are_few(element) else applied(name, element)


def towards_zero(element: Symbolic, place: str = "") -> Any:
    """Return ``element``, a symbolic number, rounded towards 0, as a conversion to an integer dtype does.

    ``place`` is the line of the program, which the message names if the draw is refused later.
    """
    return whole_part("trunc", element, place)


def applied_to_many(name: str, *operands: Any) -> Many:
    """Return the operation ``name`` of the table of primitives, applied to arrays of which one is a noise vector.

    A noise vector is an array of symbolic random numbers. Raises ``RuleDeclined`` if the primitive has no rule for
    noise vectors.
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


class Operations:
    """The element-wise operations of the table of primitives as methods, for example ``x.add(left, right)``."""

    def __init__(self, apply: Rule) -> None:
        """Store ``apply``. The method with the name of an operation calls ``apply(name, *operands)``."""
        self._apply = apply

    def __getattr__(self, name: str) -> Rule:
        if name not in ELEMENTWISE:
            raise AttributeError(name)
        return partial(self._apply, name)


OF_SCALARS, OF_VECTORS = Operations(applied), Operations(applied_to_many)
"""Operations on symbolic and concrete numbers, and on noise vectors."""


# Comparisons


def answered(name: str, *operands: Any, place: str = "") -> bool:
    """Return the result of the comparison ``name`` of ``operands``: drawn if one is symbolic, else computed by NumPy.

    ``place`` is the line of the program that compares, by default the current line.
    """
    if any_symbolic(operands):
        given = (each if isinstance(each, SYMBOLIC) else float(each) for each in operands)
        return bool(COMPARISONS[name].scalar(*given, place=place))  # type: ignore[operator]  # none is blank
    return bool((COMPARISONS[name].numbers or getattr(np, name))(*operands))


def compared(name: str, left: Any, right: Any, place: str) -> Any:
    """Return the comparison ``name`` of the elements ``left`` and ``right`` as an outcome, drawn when it is read.

    If the values of both are known, the result is 0 or 1. ``place`` is the line of the program that compares.
    """
    if not (is_open(left) or is_open(right)):
        return int(answered(name, known(left), known(right)))
    smaller, or_equal = _SMALLER.get(name, (0, False))
    small, larger = (left, right)[:: -1 if smaller else 1]
    if name in _SMALLER and isinstance(small, Count) and not is_open(larger):
        return Truth(lambda: int(small.below(_next_whole(known(larger)) if or_equal else known(larger))))
    return Truth(lambda: int(answered(name, number(left), number(right), place=place)))


_SMALLER = {"less": (0, False), "less_equal": (0, True), "greater": (1, False), "greater_equal": (1, True)}
"""Comparison -> (index of the operand that must be smaller, whether equality counts)."""


def _next_whole(bound: Any) -> Any:
    """Return the bound b for which an integer is below b exactly if it is at most ``bound``, for example 4 for 3.7."""
    return math.floor(bound) + 1 if math.isfinite(bound) else bound


def result(name: str, *operands: Any) -> Any:
    """Return the operation or comparison ``name`` of the table of primitives, applied to ``operands``."""
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
    """Return whether ``left`` is below ``right``, two symbolic numbers.

    An integer with few values is drawn first. Then a race decides if both are functions of exponential clocks;
    otherwise ``left - right`` is compared with 0. ``place`` is the line that compares; ``or_equal`` includes equality.
    """
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
    """Return whether ``left`` is below ``right``, two functions of exponential clocks, by one race among these clocks.

    ``place`` is the line that compares; ``or_equal`` includes equality. Raises ``NeedsValue`` if no such clocks
    determine their order.
    """
    largest = _of_largest(left, right)
    mine, its = _parts(left), _parts(right)
    everything = list(dict.fromkeys((*mine, *its)))
    result = everything[winner(everything, largest=largest, first_of_ties=False, place=place)]
    inside, beside = (its, mine) if largest else (mine, its)
    return result in inside and (or_equal or result not in beside)


def _same(left: Symbolic, right: Symbolic, place: str) -> bool:
    """Return whether ``left`` and ``right``, two symbolic numbers, are equal.

    Two maxima are equal if the same number is the largest in both. Two numbers that depend on different uniforms are
    unequal, because their values are continuous; ``NeedsValue`` is raised if one of them has a value of positive
    probability. ``place`` is the line that compares.
    """
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
    """Return the primitive ``name``, a comparison of two operands.

    ``rule`` compares symbolic numbers, ``vector`` noise vectors; ``more`` are further fields of this ``Primitive``.
    """
    numbers = getattr(operator, more["python"][0])
    return Primitive(name, Family.COMPARISON, rule, vector, getattr(np, name), Result.BOOLS, numbers=numbers, **more)


def _crossed(
    values: list[Continuous], bounds: Any, shape: tuple[int, ...], *, greater: bool, on_the_left: bool
) -> Crossing:
    """Compare each number of ``values`` with its row of very many ``bounds``, and return symbolic bools.

    ``shape`` is the shape of the result. ``greater`` states that the comparison is ``>`` or ``>=``, and ``on_the_left``
    that the number is the left operand.
    """
    return crossing(values, bounds, shape, above=greater == on_the_left)


def _ask(name: str, rule: Callable[..., Any], **more: Any) -> Primitive:
    """Return the primitive ``name``, a test of one number such as ``isnan``.

    ``rule`` is the rule for a symbolic number; ``more`` are further fields of this ``Primitive``.
    """
    return Primitive(name, Family.QUESTION, rule, _ONE_BY_ONE, getattr(np, name), Result.BOOLS, **more)


_ONE_BY_ONE = Blank("the answer would have to be drawn for each element of the noise vector")
_BELOW, _ABOVE = partial(_crossed, greater=False), partial(_crossed, greater=True)
COMPARISONS = table(
    (
        _compare("less", _less, _BELOW, torch=("lt",), jax=("lt", "lt_to"), python=("lt",)),
        _compare("less_equal", partial(_less, or_equal=True), _BELOW,
                 torch=("le",), jax=("le", "le_to"), python=("le",)),
        _compare("greater", lambda left, right, place: _less(right, left, place=place), _ABOVE,
                 torch=("gt",), jax=("gt",), python=("gt",)),
        _compare("greater_equal", lambda left, right, place: _less(right, left, place=place, or_equal=True), _ABOVE,
                 torch=("ge",), jax=("ge",), python=("ge",)),
        _compare("equal", _equal, _ONE_BY_ONE, torch=("eq",), jax=("eq", "eq_to"), python=("eq",)),
        _compare("not_equal", lambda left, right, place: not _equal(left, right, place=place), _ONE_BY_ONE,
                 torch=("ne",), jax=("ne",), python=("ne",)),
    ),
    (
        _ask("signbit", algebra.has_sign, torch=("signbit",)),
        _ask("isnan", lambda value, place: False, torch=("isnan",), math=("isnan",)),
        _ask("isinf", lambda value, place: False, torch=("isinf",), math=("isinf",)),
        _ask("isfinite", lambda value, place: True, math=("isfinite",)),
        _ask("logical_not", lambda value, place: value.equals(0.0, place)),
    ),
)  # fmt: skip
"""Name -> comparison. Its vector rule compares one number with very many bounds."""


# Rows of elements

_NO_VECTOR = Blank("each element of the noise vector would have to be decided")
_MOVES = Blank("it only moves elements, so it needs no rule for outcomes")
_NOT_READ = Blank("it does not read the elements, so it needs no rule for outcomes")


def _logic(name: str, rule: Rule, **more: Any) -> Primitive:
    """Return the primitive ``name``, an operation on bools that ``rule`` computes.

    ``more`` are further fields of this ``Primitive``.
    """
    return Primitive(name, Family.LOGIC, rule, _NO_VECTOR, getattr(np, name), Result.BOOLS, **more)


def _folding(name: str, pair: str, of_counts: type[Count | Product], vector: Rule | Blank, **more: Any) -> Primitive:
    """Return the primitive ``name``, a reduction that applies the operation ``pair`` to one element after another.

    The result for counts (non-negative integers) is a symbolic outcome of the class ``of_counts``. ``vector`` is the
    rule for noise vectors; ``more`` are further fields.
    """
    rule = partial(rows.folded, partial(applied, pair), getattr(np, name), of_counts)
    return Primitive(name, Family.REDUCTION, rule, vector, getattr(np, name), **more)


def _extreme(name: str, *, largest: bool, **more: Any) -> Primitive:
    """Return the primitive ``name``, the maximum of elements, or the minimum if ``largest`` is False.

    ``more`` are further fields of this ``Primitive``.
    """
    rule, vector = partial(rows.extreme, largest=largest), partial(contests, largest=largest)
    return Primitive(name, Family.EXTREME, rule, vector, getattr(np, name), **more)


def _place(name: str, *, largest: bool, **more: Any) -> Primitive:
    """Return the primitive ``name``, the index of the maximum, or of the minimum if ``largest`` is False.

    ``more`` are further fields of this ``Primitive``.
    """
    rule, vector = partial(rows.place_of_extreme, largest=largest), partial(contests, largest=largest)
    return Primitive(name, Family.EXTREME, rule, vector, getattr(np, name), Result.PLACES, **more)


def _scan(name: str, of: Primitive, numbers: Rule, **more: Any) -> Primitive:
    """Return the primitive ``name``, which applies the reduction ``of`` to every prefix of a row of elements.

    ``numbers`` computes the result for plain numbers; ``more`` are further fields of this ``Primitive``.
    """
    vector = Blank("each partial result would be a function of several random numbers")
    return Primitive(name, Family.SCAN, of.scalar, vector, numbers, **more)


def _in_order(
    row: list[Any], ask: rows.Ask, argument: int | None, *, ranks: Rule, largest: bool = False, stable: bool = False
) -> tuple[list[Any], list[Any]]:
    return rows.ordered(row, ask, ranks(len(row), argument), largest=largest, stable=stable)


def _ordering(name: str, ranks: Rule, vector: Rule | Blank = _NO_VECTOR, **more: Any) -> Primitive:
    """Return the primitive ``name``, an operation that sorts a row: values at some ranks, and their indices.

    ``ranks(length, argument)`` returns these ranks for a row of the given length; ``argument`` is that of the call,
    such as k. ``vector`` is the rule for noise vectors; ``more`` are further fields.
    """
    return Primitive(name, Family.ORDERING, partial(_in_order, ranks=ranks), vector, _FOLLOWED, **more)


_ORDERS_ONE_BY_ONE = Blank("only the first element of the order of a noise vector is followed, not the whole order")
_SUM = _folding("sum", "add", Count, totals, torch=("sum",), jax=("reduce_sum",))
_PRODUCT = _folding("prod", "multiply", Product, Blank("products of the elements of a noise vector are not followed"),
                    torch=("prod",), jax=("reduce_prod",))  # fmt: skip
_LARGEST = _extreme("max", largest=True, torch=("max",))
_SMALLEST = _extreme("min", largest=False, torch=("min",))
ROWS = table(
    (
        Primitive("where", Family.CHOICE, rows.choice, joined, np.where, torch=("where",), jax=("select_n",)),
        _logic("bitwise_and", rows.both, torch=("bitwise_and", "logical_and"), jax=("and",)),
        _logic("bitwise_or", rows.either, torch=("bitwise_or", "logical_or"), jax=("or",)),
        _logic("bitwise_xor", rows.one_of_two, torch=("bitwise_xor", "logical_xor"), jax=("xor",)),
        Primitive("invert", Family.LOGIC, rows.turned, Crossing.turned, np.invert, Result.BOOLS,
                  torch=("bitwise_not", "logical_not"), jax=("not",)),
    ),
    (
        _SUM,
        _PRODUCT,
        Primitive("any", Family.REDUCTION, rows.some, _NO_VECTOR, np.any, Result.BOOLS,
                  torch=("any",), jax=("reduce_or",)),
        Primitive("all", Family.REDUCTION, rows.every, _NO_VECTOR, np.all, Result.BOOLS,
                  torch=("all",), jax=("reduce_and",)),
        _LARGEST,
        _SMALLEST,
        _extreme("amax", largest=True, torch=("amax",), jax=("reduce_max",)),
        _extreme("amin", largest=False, torch=("amin",), jax=("reduce_min",)),
        _place("argmax", largest=True, torch=("argmax",), jax=("argmax",)),
        _place("argmin", largest=False, torch=("argmin",), jax=("argmin",)),
        _scan("cumsum", _SUM, np.cumsum, torch=("cumsum",), jax=("cumsum",)),
        _scan("cumprod", _PRODUCT, np.cumprod, torch=("cumprod",), jax=("cumprod",)),
        _scan("cummax", _LARGEST, np.maximum.accumulate, torch=("cummax",), jax=("cummax",)),
        _scan("cummin", _SMALLEST, np.minimum.accumulate, torch=("cummin",), jax=("cummin",)),
        Primitive("add.at", Family.ACCUMULATION, _SUM.scalar,
                  Blank("sums of noise vectors and other numbers are not followed"), _ROUNDS,
                  torch=("scatter_add", "index_add"), jax=("scatter-add",)),
    ),
    (
        Primitive("softmax", Family.ORDER_ALONE, rows.in_one_way, _ORDERS_ONE_BY_ONE, _ROUNDS,
                  torch=("_softmax", "_log_softmax")),
        _ordering("sort", rows.all_ranks, torch=("sort",), jax=("sort",)),
        _ordering("argsort", rows.all_ranks, result=Result.PLACES, torch=("argsort",)),
        _ordering("topk", rows.first_ranks, contests, torch=("topk",), jax=("top_k",)),
        _ordering("kthvalue", rows.one_rank, torch=("kthvalue",)),
        _ordering("median", rows.middle_rank, torch=("median", "nanmedian")),
        Primitive("searchsorted", Family.LOOKUP, rows.looked_up, lookup, np.searchsorted, Result.PLACES,
                  torch=("searchsorted", "bucketize")),
    ),
)  # fmt: skip
"""Name -> primitive on rows. The scalar rule gets a row of elements; the vector rule gets all rows of a noise vector.
"""


# Movement


def _movement(name: str, family: Family = Family.VIEW, outcome: Blank = _MOVES, **more: Any) -> Primitive:
    """Return the primitive ``name``, which only moves elements: the library itself computes the positions.

    ``family`` is the kind of movement, ``outcome`` the reason why outcomes need no rule, and ``more`` are further
    fields of this ``Primitive``.
    """
    return Primitive(name, family, rows.moved, Many.taken, outcome, **more)


_BESIDE_OTHERS = Blank("an array that mixes noise with other numbers is not followed")
MOVEMENT = table(
    (
        _movement("reshape", torch=("view", "_unsafe_view", "reshape"), jax=("reshape",)),
        _movement("expand_dims", torch=("unsqueeze",), jax=("expand_dims",)),
        _movement("squeeze", torch=("squeeze",), jax=("squeeze",)),
        _movement("broadcast_to", torch=("expand",), jax=("broadcast_in_dim", "broadcast")),
        _movement("transpose", torch=("t", "transpose", "permute"), jax=("transpose",)),
        _movement("slice", torch=("slice", "select"), jax=("slice", "dynamic_slice")),
        _movement("split", torch=("split", "split_with_sizes", "unbind"), jax=("split", "unstack")),
        _movement("sliding_window_view", torch=("unfold",)),
        _movement("diagonal", torch=("diagonal",)),
        _movement("view", torch=("alias", "detach")),
    ),
    (
        _movement("take", Family.SELECTION, torch=("take", "index", "index_select", "masked_select")),
        _movement("take_along_axis", Family.SELECTION, torch=("gather",), jax=("gather",)),
        _movement("flip", Family.SELECTION, torch=("flip",), jax=("rev",)),
        _movement("roll", Family.SELECTION, torch=("roll",)),
        _movement("repeat", Family.SELECTION, torch=("repeat_interleave",)),
        _movement("tile", Family.SELECTION, torch=("repeat", "tile")),
        *(Primitive(name, Family.INSERTION, rows.moved, _BESIDE_OTHERS, _MOVES, torch=(in_torch,), jax=in_jax)
          for name, in_torch, in_jax in (
              ("put", "index_put", ()), ("put_along_axis", "scatter", ("scatter",)), ("index_copy", "index_copy", ()),
              ("place", "masked_scatter", ()), ("select_scatter", "select_scatter", ()),
              ("slice_scatter", "slice_scatter", ("dynamic_update_slice",)))),
        *(Primitive(name, Family.PADDING, rows.moved, _BESIDE_OTHERS, _MOVES, torch=(in_torch,), jax=in_jax)
          for name, in_torch, in_jax in (
              ("pad", "constant_pad_nd", ("pad",)), ("triu", "triu", ()), ("tril", "tril", ()),
              ("diag", "diag_embed", ()))),
        Primitive("concatenate", Family.JOINING, np.concatenate, joined, _MOVES,
                  torch=("cat",), jax=("concatenate",)),
        Primitive("stack", Family.JOINING, np.stack, joined, _MOVES, torch=("stack",), jax=("stack",)),
        _movement("copy", Family.COPY, torch=("clone", "contiguous", "lift_fresh"),
                  jax=("copy", "copy_p", "device_put", "sharding_constraint", "reduce_precision",
                       "optimization_barrier", "stage", "real", "reshard", "layout_constraint", "stop_gradient")),
        _movement("zeros_like", Family.SHAPE, _NOT_READ, torch=("zeros_like", "new_zeros")),
        _movement("ones_like", Family.SHAPE, _NOT_READ, torch=("ones_like", "new_ones")),
        _movement("empty_like", Family.SHAPE, _NOT_READ, torch=("empty_like", "new_empty")),
        _movement("full_like", Family.SHAPE, _NOT_READ, torch=("full_like", "new_full")),
    ),
)  # fmt: skip
"""Name -> primitive that moves elements."""


# The table

PRIMITIVES = table(ELEMENTWISE.values(), COMPARISONS.values(), ROWS.values(), MOVEMENT.values())
"""Name -> primitive, of all families. Registering a name twice is an error."""
OF_TORCH, OF_JAX, OF_MATH, OF_PYTHON = (spelled(PRIMITIVES, each) for each in ("torch", "jax", "math", "python"))


def names_of(named: dict[str, Primitive], *families: Family) -> dict[str, str]:
    """Return the primitives of the given ``families``: name of the function in a library -> name of the primitive.

    ``named`` maps the names of the library's functions to primitives.
    """
    return {name: row.name for name, row in named.items() if row.family in families}


def with_rule(named: dict[str, Primitive], column: str) -> dict[str, Primitive]:
    """Return the entries of ``named`` whose primitive has a rule of one kind.

    ``named`` maps the names of a library's functions to primitives. ``column`` is the field of ``Primitive`` with this
    kind of rules: ``scalar``, ``vector`` or ``outcome``.
    """
    return {name: row for name, row in named.items() if not isinstance(getattr(row, column), Blank)}
