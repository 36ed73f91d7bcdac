"""Rules of JAX operations: on arrays with symbolic elements, and on concrete numbers that NumPy computes bit for bit.

Element-wise: comparisons, choices and conversions stay symbolic until they are read. Along an axis: sums and products
read no more elements than necessary; sorting and argmax are races. Movement (reshape, gather): JAX itself moves the
positions, and no element is read.

Concrete numbers: JAX compiles a program for each primitive and each shape, and a verifier is examined at many shapes.
Most primitives of an eager verifier move elements, count, or apply one IEEE operation, so NumPy computes those. JAX
itself computes sums of floats and functions such as ``log``, because it rounds them in its own way. It also computes
every operation with a subnormal number (which it flushes to 0), a NaN or a negative zero.

A handler applies one primitive: it gets the operands, the parameters of the primitive, and JAX's description of the
result (shape and dtype), and returns the elements of the result, or ``Declined`` if it has no rule for these operands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax._src import core

from specverify.intercept import audit
from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import array as new_array
from specverify.intercept.cpython.patches import asarray, empty
from specverify.intercept.jax.arrays import SymbolicTracer, concrete, elements_of, made_array
from specverify.intercept.jax.draws import Bits
from specverify.intercept.refusals import Declined, NeedsValue, is_declined
from specverify.intercept.run import RUNS
from specverify.intercept.symbolic import rows
from specverify.intercept.symbolic.continuous import SYMBOLIC, Continuous, any_symbolic, is_whole
from specverify.intercept.symbolic.deferred import Count, Deferred, Product, Truth, is_count, is_open, known, number
from specverify.intercept.symbolic.primitives import (
    OF_JAX,
    PRIMITIVES,
    Family,
    Primitive,
    Result,
    answered,
    applied,
    compared,
    names_of,
    towards_zero,
    whole_part,
    with_rule,
)
from specverify.intercept.symbolic.rows import Ask
from specverify.intercept.symbolic.steps import FLOOR
from specverify.intercept.symbolic.together import ADD, MAXIMUM, MULTIPLY
from specverify.laws import rounding

# Element-wise

# Elementwise


Handler = Callable[[list[Any], dict[str, Any], Any], Any]
"""``handler(operands, parameters, result)`` returns the elements of the result; ``result`` is its shape and dtype."""

_ALGEBRA = names_of(OF_JAX, Family.ARITHMETIC, Family.CLAMP)
_WHOLE_PARTS = names_of(OF_JAX, Family.WHOLE_PART)
_LOGIC = names_of(OF_JAX, Family.LOGIC)
_NUMPY: dict[str, Any] = {
    name: row.outcome for name, row in with_rule(OF_JAX, "outcome").items() if name in _ALGEBRA | _LOGIC
}
"""Rules for symbolic outcomes, computed in their dtype. Operations without a rule force the outcome and run in JAX."""
_CLAMPED_HALVES = Declined("random numbers of 16 bits are clamped: too many of them equal the bound")
_TINIEST = 1e-30
"""A summand below this changes no uniform that a generator can return, except 0."""


def each(function: Callable[..., Any], operands: list[Any]) -> np.ndarray[Any, Any]:
    """Return the array of ``function`` applied to the elements of ``operands``: arrays of one shape, or scalars."""
    return rows.each(function, *map(elements_of, operands))


def _summand_is_nothing(name: str, left: Any, right: Any) -> bool:
    return name == ADD and isinstance(left, Continuous) and not left.steps and 0 < abs(right) < _TINIEST


def _algebra(name: str, *elements: Any) -> Any:
    numbers = [number(element) for element in elements]
    if name == ADD and len(numbers) == 2:
        for value, other in (numbers, numbers[::-1]):
            if not isinstance(other, SYMBOLIC) and _summand_is_nothing(name, value, other):
                return value
    return applied(name, *numbers)


def _whole(elements: np.ndarray[Any, Any]) -> Any:
    """Return ``elements``, the results of a rule that was applied to each element of an array.

    If the rule declined for one element, return its ``Declined`` instead: the rule must apply to all.
    """
    return next(filter(is_declined, elements.flat), elements)


def arithmetic(primitive: str) -> Handler:
    """Return the handler of ``primitive``, an arithmetic operation on symbolic numbers, random bits and outcomes.

    A handler computes a primitive whose operands are symbolic, or returns ``Declined``.
    """
    name, of_outcomes = _ALGEBRA.get(primitive), _NUMPY.get(primitive)
    no_rule = Declined(f"there is no rule for {primitive} of random numbers")
    clamps = primitive in names_of(OF_JAX, Family.CLAMP)

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        halves = clamps and rounding.is_of_16_bits(result.dtype)

        def one(*elements: Any) -> Any:
            if any_symbolic(elements):
                outcome = no_rule if name is None else _algebra(name, *elements)
                if halves and not any(outcome == element for element in elements):
                    outcome = _CLAMPED_HALVES
                if is_declined(outcome):
                    refused = NeedsValue("value-needed", f"the value of a random number is needed for {primitive}")
                    raise refused.because(outcome)
                return outcome
            if any(isinstance(element, Bits) for element in elements):
                return _of_bits(primitive, *elements)
            if of_outcomes is None:
                return Declined(f"there is no rule for {primitive} of outcomes")
            return _of_outcomes(primitive, of_outcomes, result.dtype, elements)

        outcome = each(one, operands)
        return _whole(outcome)

    return handler


def _of_bits(primitive: str, *elements: Any) -> Any:
    left, right = (*elements, None)[:2]
    if primitive == "or" and isinstance(left, Bits) and not is_open(right):
        return left.placed_under(int(known(right)))
    if primitive == "and" and isinstance(left, Bits) and not is_open(right):
        return left.masked(int(known(right)))
    return Declined(f"there is no rule for {primitive} of random bits")


def _of_outcomes(primitive: str, function: Callable[..., Any], dtype: Any, elements: tuple[Any, ...]) -> Any:
    if not any(map(is_open, elements)):
        return typed(function, dtype, [known(element) for element in elements])
    if dtype == np.bool_ and primitive in _OF_TRUTHS:
        return _OF_TRUTHS[primitive](*elements)
    if primitive in _OF_COUNTS and all(map(is_count, elements)):
        return _OF_COUNTS[primitive](elements)
    return Deferred(lambda: typed(function, dtype, [known(element) for element in elements]))


def typed(function: Callable[..., Any], dtype: Any, numbers: list[Any]) -> Any:
    """Return ``function``, a NumPy function, applied to ``numbers`` that are first converted to ``dtype``."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*(np.asarray(value).astype(dtype) for value in numbers))).astype(dtype).item()


_OF_COUNTS: dict[str, Any] = {
    **dict.fromkeys(PRIMITIVES[ADD].jax, Count),
    **dict.fromkeys(PRIMITIVES[MULTIPLY].jax, Product),
}
_BOTH, _EITHER = (PRIMITIVES[name].scalar for name in ("bitwise_and", "bitwise_or"))
_OF_TRUTHS: dict[str, Any] = {
    **{name: OF_JAX[name].scalar for name in _LOGIC},
    **{name: _EITHER if row.name == MAXIMUM else _BOTH for name, row in OF_JAX.items() if row.family is Family.CLAMP},
    **dict.fromkeys(PRIMITIVES[MULTIPLY].jax, _BOTH),
}
"""Rules for outcomes that are 0 or 1: maximum is a logical or, product a logical and."""


# Other operations of one element, or of several


def _power_of_integer(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    exponent = parameters["y"]
    name = "square" if exponent == 2 else "power"
    more = () if name == "square" else (float(exponent),)
    return each(lambda element: applied(name, number(element), *more), operands)


def _clamped(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    if rounding.is_of_16_bits(result.dtype):
        return _CLAMPED_HALVES
    order = [operands[1], operands[0], operands[2]]
    if any(isinstance(element, SYMBOLIC) for each_one in order for element in elements_of(each_one).flat):
        return each(lambda *elements: applied("clip", *map(number, elements)), order)
    return Declined("a clamp of numbers that are not random")


def _whole_part(name: str) -> Handler:
    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        def one(element: Any) -> Any:
            if isinstance(element, SYMBOLIC) and name != "sign":
                return whole_part(name, element, caller())
            return Deferred(partial(Ask(place=caller()).put, lambda: applied(name, number(element))))

        return each(one, operands)

    return handler


def _rest(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Handle ``rem``: return the remainder of the division of each element of the first operand by the second.

    For random bits the remainder is an outcome, drawn when it is read. For a symbolic number it has the sign of the
    dividend. For an unread outcome it is computed when the outcome is read. ``parameters`` are those of the primitive,
    and ``result`` is JAX's description of the result.
    """

    def one(left: Any, right: Any) -> Any:
        if isinstance(left, Bits) and not is_open(right):
            return left.rest(int(known(right)))
        if isinstance(left, SYMBOLIC) or isinstance(right, SYMBOLIC):
            return applied("fmod", number(left), number(right))
        return Deferred(lambda: typed(np.fmod, result.dtype, [known(left), known(right)]))

    return each(one, operands)


def _shifted(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(left: Any, right: Any) -> Any:
        return (
            left.shifted(int(known(right)))
            if isinstance(left, Bits) and not is_open(right)
            else Declined("only random bits are shifted")
        )

    outcome = each(one, operands)
    return _whole(outcome)


def _read_as(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(element: Any) -> Any:
        return (
            element.as_float(result.dtype)
            if isinstance(element, Bits)
            else Declined("only random bits are read as a float")
        )

    if tuple(operands[0].shape) != tuple(result.shape):
        return Declined("random bits are read in another shape")
    outcome = each(one, operands)
    return _whole(outcome)


def _same_elements(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    return operands[0].elements


ELEMENTWISE: dict[str, Handler] = {
    **{name: arithmetic(name) for name in _ALGEBRA | _LOGIC},
    **{name: _whole_part(known_as) for name, known_as in _WHOLE_PARTS.items()},
    **dict.fromkeys(names_of(OF_JAX, Family.COPY), _same_elements),
    "integer_pow": _power_of_integer,
    "clamp": _clamped,
    "rem": _rest,
    "shift_right_logical": _shifted,
    "bitcast_convert_type": _read_as,
}


# Choices


_RELATIONS = names_of(OF_JAX, Family.COMPARISON)


def comparing(primitive: str) -> Handler:
    """Return the handler of ``primitive``, a comparison; its result is symbolic until it is read.

    A handler computes a primitive whose operands are symbolic, or returns ``Declined``.
    """
    name, totally = _RELATIONS[primitive], primitive.endswith("_to")

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        for operand in operands:
            rounding.saw(operand.dtype)
        place = audit.place()

        def one(*pair: Any) -> Any:
            left, right = map(_last_if_nan, pair) if totally else pair
            return compared(name, left, right, place)

        return each(one, operands)

    return handler


def _last_if_nan(element: Any) -> Any:
    """Return infinity for NaN, which JAX sorts last; any other element unchanged."""
    return math.inf if isinstance(element, float) and math.isnan(element) else element


def _is_finite(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(element: Any) -> Any:
        if isinstance(element, SYMBOLIC):
            return 1
        return Truth(lambda: int(math.isfinite(known(element))))

    return each(one, operands)


def choosing(name: str) -> Handler:
    """Return the handler of ``name``, a selection between operands by a condition, such as ``select_n``.

    A handler computes a primitive whose operands are symbolic, or returns ``Declined``.
    """
    rule: Any = OF_JAX[name].scalar

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        return each(rule, operands)

    return handler


def _of_unknown(element: Any, to: Any, *, into_floats: bool) -> Any:
    if into_floats:
        return element
    if to == np.bool_:
        return Truth(lambda: int(answered("not_equal", element, 0.0)))
    return element if isinstance(element, Continuous) and is_whole(element) else towards_zero(element, caller())


def _converted(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Handle ``convert_element_type``: convert the elements of the operand to the dtype of ``result``, without a draw.

    * A symbolic number: unchanged for floats. For integers, its integer part as an outcome, or as a symbolic integer if
      it has very many values. For bool, an outcome: 1 if it is not 0.
    * An unread outcome: converted when it is read.
    """
    from_dtype, to = operands[0].dtype, result.dtype
    if np.dtype(to).kind not in "biuf" and str(to) != "bfloat16":
        return Declined(f"there is no rule for a conversion to {to}")
    into_floats = np.dtype(to).kind not in "biu"
    rounding.saw(to)

    def one(element: Any) -> Any:
        if isinstance(element, Bits):
            return element.converted(to)
        if isinstance(element, SYMBOLIC):
            return _of_unknown(element, to, into_floats=into_floats)
        if not is_open(element):
            return np.asarray(known(element)).astype(from_dtype).astype(to).item()
        if from_dtype == np.bool_ or (is_count(element) and to != np.bool_ and np.dtype(to).itemsize >= 4):
            return element
        if to == np.bool_:
            return Truth(lambda: int(known(element) != 0))
        return Deferred(lambda: np.asarray(known(element)).astype(from_dtype).astype(to).item())

    return each(one, operands)


CHOICES: dict[str, Handler] = {
    **{name: comparing(name) for name in _RELATIONS},
    **{name: choosing(name) for name in names_of(OF_JAX, Family.CHOICE)},
    "is_finite": _is_finite,
    "convert_element_type": _converted,
}


# Rows


def _row_of(name: str) -> Callable[..., Any]:
    """Return the rule of the operation ``name`` for one row of elements, such as a sum over the row.

    ``rule(row, ask)`` returns the result on ``row``; ``ask`` has the operation and the line for a refusal. A row with
    random bits is refused.
    """
    rule: Any = OF_JAX[name].scalar

    def of_row(row: Sequence[Any], ask: Ask) -> Any:
        if any(isinstance(element, Bits) for element in row):
            raise NeedsValue("order-of-joined", "random bits are put together or in an order as they are")
        return rule(row, ask)

    return of_row


def reducing(name: str) -> Handler:
    """Return the handler (the implementation for symbolic arrays) of the primitive ``name``, a reduction over axes."""
    rule, of_bools = _row_of(name), OF_JAX[name].result is Result.BOOLS

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        if of_bools and operands[0].dtype != np.bool_:
            return Declined("a reduction of bools is given other numbers")
        ask = Ask(f"{name} of JAX", caller(), result.dtype)
        return rows.reduced(partial(rule, ask=ask), elements_of(operands[0]), parameters["axes"])

    return handler


def scanning(name: str) -> Handler:
    """Return the handler (implementation for symbolic arrays) of the primitive ``name``, a scan such as ``cumsum``."""
    rule = _row_of(name)

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        asked = partial(rule, ask=Ask(f"{name} of JAX", caller(), result.dtype))
        return rows.scanned(asked, elements_of(operands[0]), parameters["axis"], reverse=parameters["reverse"])

    return handler


def ordering(name: str) -> Handler:
    """Return the handler (the implementation for symbolic arrays) of the primitive ``name``: ``sort`` or ``top_k``.

    ``sort`` orders one array, and moves the elements of further arrays in the same way.
    """
    rule: Any = OF_JAX[name].scalar

    def handler(operands: list[Any], parameters: dict[str, Any], results: Any) -> Any:
        if parameters.get("num_keys", 1) != 1:
            return Declined("a sort by several keys has no rule")
        count, axis = parameters.get("k"), parameters.get("dimension", parameters.get("axis", -1))
        ask = Ask(f"{name} of JAX", caller())
        keys, *others = (np.moveaxis(elements_of(operand), axis, -1) for operand in operands)
        number = keys.shape[-1] if count is None else count
        outcome = [empty((*keys.shape[:-1], number), dtype=object) for _ in results]
        for index in np.ndindex(*keys.shape[:-1]):
            row = _in_turn(list(keys[index]))
            values, places = rule(row, ask, count, largest=count is not None, stable=True)
            beside = [[rows.entry_at(list(each[index]), place) for place in places] for each in others]
            for out, made in zip(outcome, (values, *beside) if count is None else (values, places), strict=True):
                out[index] = made
        return [np.moveaxis(each, -1, axis) for each in outcome]

    return handler


def _in_turn(row: list[Any]) -> list[Any]:
    """Return ``row`` with each random word (an unsigned integer of random bits) replaced by its uniform number.

    The uniform number has the same order as the word. Raises ``NeedsValue`` for a row that mixes random words with
    other elements.
    """
    words = [element.source.width == element.kept for element in row if isinstance(element, Bits)]
    if words and (len(words) < len(row) or not all(words)):
        raise NeedsValue("order-of-joined", "random bits are put in an order with something else")
    return [Continuous(element.source.uniform) if isinstance(element, Bits) else element for element in row]


_PLACES_BACK = ("dimension_numbers", "indices_are_sorted", "unique_indices", "mode")


def accumulating(name: str) -> Handler:
    """Return the handler of ``name``, a scatter that adds updates to a target array.

    The handler is the implementation for symbolic arrays. It applies to floats of 32 bits or more, with a symbolic
    number among them.
    """
    rule = _row_of(name)

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        target, where, source = operands
        if not _follows_sums(result, target, source):
            return _NO_SUMS
        more = {key: parameters[key] for key in _PLACES_BACK}
        put = partial(jax.lax.scatter_add, **more)
        zeros, index = np.zeros(target.shape, np.float32), concrete(where)
        _, back = jax.vjp(lambda updates: put(zeros, index, updates), np.zeros(source.shape, np.float32))
        (places,) = back(np.arange(1, zeros.size + 1, dtype=np.float32).reshape(zeros.shape))
        asked = partial(rule, ask=Ask(f"{name} of JAX", caller(), result.dtype))
        return rows.accumulated(asked, elements_of(target), elements_of(source), np.asarray(places).astype(int) - 1)

    return handler


_NO_SUMS = Declined("outcomes are added up, or random numbers in integers, in 16 bits, or too many of them")


def _follows_sums(result: Any, *operands: Any) -> bool:
    """Return whether the rules for sums (and sums of products) of symbolic numbers apply to ``operands``.

    ``result`` is JAX's description of the result. Required are floats of 32 bits or more, at most ``MOST_PRODUCTS``
    elements in an operand, and a symbolic number.
    """
    dtypes = [np.dtype(each.dtype) for each in (result, *operands)]
    wide = all(dtype.kind == "f" and dtype.itemsize >= rows.NARROWEST for dtype in dtypes)
    few = all(math.prod(operand.shape) <= rows.MOST_PRODUCTS for operand in operands)
    return wide and few and any(any_symbolic(elements_of(operand).flat) for operand in operands)


def _product(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Handle ``dot_general``: each element of the result is a sum of products. Factors that are outcomes are drawn.

    ``parameters`` are those of the primitive. Returns ``Declined`` for operands to which the rule does not apply (see
    ``_follows_sums``), and for too many products.
    """
    if not _follows_sums(result, *operands):
        return _NO_SUMS
    contracted, batched = parameters["dimension_numbers"]
    parts = []
    for operand, sums, batch in zip(map(elements_of, operands), contracted, batched, strict=True):
        free = [axis for axis in range(operand.ndim) if axis not in {*sums, *batch}]
        sizes = [[operand.shape[axis] for axis in axes] for axes in (batch, free, sums)]
        parts.append((operand.transpose(*batch, *free, *sums).reshape([math.prod(each) for each in sizes]), sizes))
    (left, (batch, rows_of, _)), (right, (_, columns_of, _)) = parts
    if left.size * math.prod(columns_of) > rows.MOST_PRODUCTS:
        return _NO_SUMS

    def times(one: Any, other: Any) -> Any:
        if any_symbolic((one, other)):
            return applied(MULTIPLY, number(one), number(other))
        return typed(np.multiply, result.dtype, [known(one), known(other)])

    total = partial(_row_of(_SUMS), ask=Ask("dot_general of JAX", caller(), result.dtype))
    products = rows.each(times, left[:, :, None], right[:, None])
    return rows.reduced(total, products, [-1]).reshape([*batch, *rows_of, *columns_of])


_SUMS = "reduce_sum"


def _floor_divided(operands: dict[str, Any], result: Any) -> Any:
    """Handle ``jax.numpy.floor_divide`` of a continuous random number by a positive number.

    ``operands`` has them by name, and ``result`` is JAX's description of the result. Returns ``Declined`` for other
    operands, and for a number that was clamped or rounded to a grid.
    """
    wide = np.dtype(result.dtype).kind == "f" and np.dtype(result.dtype).itemsize >= rows.NARROWEST
    declined = Declined("only a continuous random number in floats is divided by a positive number")

    def one(left: Any, right: Any) -> Any:
        smooth = isinstance(left, Continuous) and not left.clamped and not left.in_steps
        if not wide or not smooth or isinstance(right, (*SYMBOLIC, Bits)) or not 0 < known(right) < math.inf:
            return declined
        return whole_part(FLOOR.name, applied("divide", left, float(known(right))), caller())

    return _whole(each(one, [operands["x1"], operands["x2"]]))


def _is_scalar(operand: Any) -> bool:
    return not isinstance(operand, SymbolicTracer) and getattr(operand, "shape", ()) == ()


_WORDS = {np.dtype("float32"): 32, np.dtype("float64"): 64}
"""Dtype -> bits of the random word of which ``jax.random.uniform`` makes one number."""


def _uniforms(operands: dict[str, Any], result: Any) -> Any:
    """Return the numbers of ``jax.random.uniform`` between ``minval`` and ``maxval``.

    JAX fills a significand with random bits, subtracts 1, and moves the number between the ends. ``operands`` has the
    arguments by name, and ``result`` is JAX's description of the result. Declined for several keys or ends, for 16-bit
    floats, and if the run gives uniforms fixed values.
    """
    width, draws = _WORDS.get(result.dtype), RUNS.jax[-1]
    scalars = operands.keys() == {"key", "minval", "maxval"} and all(map(_is_scalar, operands.values()))
    if width is None or draws.boundary is not None or not scalars:
        return Declined("there is no rule for these uniform numbers as a whole")
    low, high = (asarray(operands[end]).astype(result.dtype).item() for end in ("minval", "maxval"))
    scale = float(result.dtype.type(high) - result.dtype.type(low))
    info = np.finfo(result.dtype)
    one = int(np.asarray(1.0, result.dtype).view(f"uint{width}"))
    rounding.saw(result.dtype)

    def number_of(word: Bits) -> Any:
        significand = word.shifted(width - info.nmant).placed_under(one).as_float(result.dtype)
        moved_up = _algebra(
            _ALGEBRA["add"], _algebra(_ALGEBRA["mul"], _algebra(_ALGEBRA["sub"], significand, 1.0), scale), low
        )
        return _algebra(_ALGEBRA["max"], low, moved_up)

    words = draws.bits(operands["key"], drawing_function(), width, result.shape)
    return rows.each(number_of, words)


def drawing_function() -> str:
    """Return the public name of the function of JAX that is being evaluated, such as ``jax.random.gumbel``."""
    name = next((name for name in RUNS.jax_functions if name not in _INNER), "bits")
    return f"jax.random.{name.strip('_')}"


_INNER = {"_where", "clip"}
FUNCTIONS: dict[str, Callable[[dict[str, Any], Any], Any]] = {"floor_divide": _floor_divided, "_uniform": _uniforms}
"""Compiled function of JAX -> handler, called with the operands by name and JAX's description of the result."""
ROWS: dict[str, Handler] = {
    **{name: accumulating(name) for name in names_of(OF_JAX, Family.ACCUMULATION)},
    "dot_general": _product,
    **{name: reducing(name) for name in names_of(OF_JAX, Family.REDUCTION, Family.EXTREME)},
    **{name: scanning(name) for name in names_of(OF_JAX, Family.SCAN)},
}
SEVERAL: dict[str, Handler] = {name: ordering(name) for name in names_of(OF_JAX, Family.ORDERING)}
"""Handlers of operations that return several arrays."""


# Moves


_PUT = PRIMITIVES["put_along_axis"].jax
_OPERANDS = {Family.VIEW: 1, Family.SELECTION: 1, Family.INSERTION: 2, Family.PADDING: 2}
"""Family -> number of operands that hold data; the others are indices. For joining, all operands hold data."""
_MOVEMENT = {name: row.family for name, row in OF_JAX.items() if row.family in {*_OPERANDS, Family.JOINING}}


def moved(
    primitive: Any,
    operands: list[Any],
    parameters: dict[str, Any],
    results: list[Any],
    cached: Callable[[list[Any], Callable[[], list[Any]]], list[Any]],
) -> Any:
    """Return the elements of ``operands`` after ``primitive``, if it only moves elements; otherwise ``Declined``.

    ``parameters`` are those of the primitive, and ``results`` JAX's descriptions of its results. ``cached(operands,
    compute)`` returns the results of the primitive on concrete ``operands``: from a cache, or else by calling
    ``compute()``.
    """
    name = primitive.name
    if name in _PUT:  # what is put stands behind the places
        operands = [operands[0], operands[2], operands[1]]
    if name not in _MOVEMENT:
        return Declined(f"there is no rule for {name} of random numbers")
    data = _OPERANDS.get(_MOVEMENT[name], len(operands))
    rest = [concrete(operand) for operand in operands[data:]]
    moving = [elements_of(operand) for operand in operands[:data]]

    def move(*places: Any) -> list[Any]:
        numbered = [*(each.astype(np.int32) for each in places), *rest]
        return cached(numbered, lambda: _of_places(name, primitive, numbered, parameters))

    return rows.moved_apart(move, moving, filler(parameters, results[0].dtype))


def _of_places(name: str, primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    if name in _PUT:
        keep = ("indices_are_sorted", "unique_indices", "mode")
        operand, updates, where = operands
        more = {key: parameters[key] for key in keep}
        return [jax.lax.scatter(operand, where, updates, parameters["dimension_numbers"], **more)]
    if _MOVEMENT[name] is Family.SELECTION and "fill_value" in parameters:
        parameters = {**parameters, "fill_value": 0}
    outcome = primitive.bind(*operands, **parameters)
    return list(outcome) if primitive.multiple_results else [outcome]


def filler(parameters: dict[str, Any], dtype: Any) -> Any:
    """Return the value that a gather returns for indices out of range.

    This is ``fill_value`` in ``parameters``, or JAX's default for ``dtype`` if it is missing.
    """
    value, kind = parameters.get("fill_value"), np.dtype(dtype).kind
    if value is not None:
        return new_array(value).astype(dtype).item()
    if kind == "b":
        return True
    if kind in "iu":
        info = np.iinfo(dtype)
        return int(info.max if kind == "u" else info.min)
    return float("nan")


# Concrete numbers


NumpyRule = Callable[..., Any]
"""``rule(parameters, *arrays)`` returns the NumPy array that the primitive returns."""

_PLAIN = {np.dtype(name) for name in ("bool", "int32", "int64", "uint32", "float32", "float64")}
_KINDS = {
    Family.ARITHMETIC: "iuf",
    Family.CLAMP: "biuf",
    Family.COMPARISON: "biuf",
    Family.LOGIC: "biu",
    Family.REDUCTION: "iu",
    Family.EXTREME: "biu",
    Family.SCAN: "iu",
}
"""Family -> kinds of dtype on which NumPy and JAX agree bit for bit."""
_DIVIDE = PRIMITIVES["divide"]
DIVISIONS = frozenset(_DIVIDE.jax)
"""Primitives that divide. XLA multiplies by the reciprocal of a constant, and of a divisor that it broadcasts."""
_OF_TABLE = {
    name: row
    for name, row in {**with_rule(OF_JAX, "outcome"), **dict.fromkeys(DIVISIONS, _DIVIDE)}.items()
    if row.family in _KINDS and row.result is not Result.PLACES
}


def _kinds_of(row: Primitive) -> str:
    if row.result is Result.FLOATS:
        return "f"
    return "b" if row.family is Family.REDUCTION and row.result is Result.BOOLS else _KINDS[row.family]


def _rule_of(row: Primitive) -> NumpyRule:
    function: Any = np.divide if row is _DIVIDE else row.outcome
    if row.family is Family.SCAN:
        return partial(_scan, function)
    if row.family in {Family.REDUCTION, Family.EXTREME}:
        return lambda parameters, array: function(array, axis=tuple(parameters["axes"]))
    return lambda parameters, *arrays: function(*arrays)


def _scan(function: Callable[..., Any], parameters: dict[str, Any], array: Any) -> Any:
    axis = parameters["axis"]
    if parameters["reverse"]:
        return np.flip(function(np.flip(array, axis), axis), axis)
    return function(array, axis)


def _broadcast(parameters: dict[str, Any], array: Any) -> Any:
    shape, places = parameters["shape"], parameters["broadcast_dimensions"]
    sizes = dict(zip(places, array.shape, strict=True))
    return np.broadcast_to(array.reshape([sizes.get(axis, 1) for axis in range(len(shape))]), shape)


def _slice(parameters: dict[str, Any], array: Any) -> Any:
    first, last = parameters["start_indices"], parameters["limit_indices"]
    steps = parameters["strides"] or (1,) * len(first)
    return array[tuple(map(slice, first, last, steps))]


def _inside(start: Sequence[int], sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return ``start``, the first corner of a window, moved so that the window lies inside an array of ``shape``.

    ``sizes`` are the sizes of the window along the axes.
    """
    return [min(max(first, 0), whole - size) for first, size, whole in zip(start, sizes, shape, strict=True)]


def _window(array: Any, start: Sequence[int], sizes: Sequence[int]) -> Any:
    return array[tuple(slice(first, first + size) for first, size in zip(start, sizes, strict=True))]


def _dynamic_slice(parameters: dict[str, Any], array: Any, *starts: Any) -> Any:
    sizes = parameters["slice_sizes"]
    return _window(array, _inside([int(start) for start in starts], sizes, array.shape), sizes)


def _gather(parameters: dict[str, Any], array: Any, places: Any) -> Any:
    numbers, sizes = parameters["dimension_numbers"], parameters["slice_sizes"]
    gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = [size for axis, size in enumerate(sizes) if axis not in gone]
    of_batch = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    result = np.empty((*places.shape[:-1], *kept), array.dtype)
    fills = parameters["mode"] == jax.lax.GatherScatterMode.FILL_OR_DROP
    for place in np.ndindex(*places.shape[:-1]):
        start = [0] * array.ndim
        for axis, first in zip(numbers.start_index_map, places[place].tolist(), strict=True):
            start[axis] = first
        for axis, index in of_batch:
            start[axis] = place[index]
        inside = _inside(start, sizes, array.shape)
        if fills and inside != start:
            result[place] = filler(parameters, array.dtype)
        else:
            result[place] = _window(array, inside, sizes).reshape(kept)
    rank = result.ndim
    return np.moveaxis(result, range(rank - len(kept), rank), numbers.offset_dims)


def _iota(parameters: dict[str, Any]) -> Any:
    shape, axis = parameters["shape"], parameters["dimension"]
    places = [size if place == axis else 1 for place, size in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis], dtype=parameters["dtype"]).reshape(places), shape)


def _unstack(parameters: dict[str, Any], array: Any) -> list[Any]:
    return list(np.moveaxis(array, parameters["axis"], 0))


def _shift_right(parameters: dict[str, Any], words: Any, by: Any) -> Any:
    return np.where(by < words.dtype.itemsize * 8, words >> by, 0)


_BY_NUMPY: dict[str, NumpyRule] = {
    **{name: _rule_of(row) for name, row in _OF_TABLE.items()},
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "select_n": lambda parameters, which, *cases: np.where(which, cases[1], cases[0]),
    "reshape": lambda parameters, array: array.reshape(parameters["new_sizes"]),
    "squeeze": lambda parameters, array: np.squeeze(array, parameters["dimensions"]),
    "transpose": lambda parameters, array: np.transpose(array, parameters["permutation"]),
    "rev": lambda parameters, array: np.flip(array, parameters["dimensions"]),
    "concatenate": lambda parameters, *arrays: np.concatenate(arrays, parameters["dimension"]),
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
    "iota": _iota,
    "convert_element_type": lambda parameters, array: array,
    "unstack": _unstack,
    "shift_right_logical": _shift_right,
    "bitcast_convert_type": lambda parameters, array: array.view(parameters["new_dtype"]),
}
_KINDS_OF_OPERANDS = {
    **{name: _kinds_of(row) for name, row in _OF_TABLE.items()},
    "convert_element_type": "biu",
    "shift_right_logical": "u",
    "bitcast_convert_type": "uif",
}
"""Primitive -> kinds of dtype of its operands; for the others any of ``_PLAIN``."""
_ROUNDING = {name for name, row in _OF_TABLE.items() if "f" in _kinds_of(row)}
"""Primitives that NumPy computes on floats, with one rounding at most."""
_CONDITIONS: dict[str, Callable[[Sequence[Any], Any, dict[str, Any]], bool]] = {
    "iota": lambda operands, result, parameters: result.dtype == np.int32 and not operands,
    "select_n": lambda operands, result, parameters: operands[0].dtype == np.bool_ and len(operands) == 3,
    "reshape": lambda operands, result, parameters: parameters.get("dimensions") is None,
    "bitcast_convert_type": lambda operands, result, parameters: operands[0].dtype.itemsize == result.dtype.itemsize,
    **dict.fromkeys(DIVISIONS, lambda operands, result, parameters: operands[1].shape == result.shape),
    **{
        name: lambda operands, result, parameters: 0 not in operands[0].shape
        for name in names_of(OF_JAX, Family.EXTREME)
    },
}


def numpy_rule(
    primitive: Any, operands: Sequence[Any], results: Sequence[Any], parameters: dict[str, Any]
) -> NumpyRule | None:
    """Return NumPy's rule of a primitive for these operands, results and parameters; None if JAX must compute it.

    ``rule(parameters, *arrays)`` returns the result as a NumPy array. ``operands`` and ``results`` are descriptions
    (shape and dtype).
    """
    rule = _BY_NUMPY.get(primitive.name)
    if rule is None or parameters.get("sharding") is not None:
        return None
    if not all(getattr(aval, "dtype", None) in _PLAIN for aval in (*operands, *results)):
        return None
    kinds, condition = _KINDS_OF_OPERANDS.get(primitive.name, "biuf"), _CONDITIONS.get(primitive.name)
    if any(operand.dtype.kind not in kinds for operand in operands):
        return None
    return rule if condition is None or condition(operands, results[0], parameters) else None


def rounds(primitive: Any, operands: Sequence[Any]) -> bool:
    """Return whether ``primitive``, which NumPy can compute, rounds its result, as arithmetic on floats does.

    ``operands`` are JAX's descriptions (shape and dtype) of its operands.
    """
    return primitive.name in _ROUNDING and any(operand.dtype.kind == "f" for operand in operands)


def _is_ordinary(array: Any) -> bool:
    """Return whether a float array has no NaN, no negative zero and no subnormal number; True for other arrays."""
    if array.dtype.kind != "f":
        return True
    small = np.abs(array) < np.finfo(array.dtype).tiny
    return not (np.isnan(array) | (small & ((array != 0) | np.signbit(array)))).any()


def computed_by_numpy(primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> Any | None:
    """Return the result of ``primitive`` on concrete ``operands``: a JAX array, or a list of several.

    ``parameters`` are those of the primitive. Returns None if JAX must compute the result.
    """
    if primitive.name not in _BY_NUMPY or any(getattr(operand, "committed", False) for operand in operands):
        return None
    avals = [core.typeof(operand) for operand in operands]
    described, _ = primitive.abstract_eval(*avals, **parameters)
    results = described if primitive.multiple_results else [described]
    rule = numpy_rule(primitive, avals, results, parameters)
    if rule is None:
        return None
    arrays = [asarray(operand, dtype=each.dtype) for operand, each in zip(operands, avals, strict=True)]
    with np.errstate(all="ignore"):
        numbers = rule(parameters, *arrays)
    if rounds(primitive, avals) and not all(map(_is_ordinary, (*arrays, numbers))):
        return None
    made = [
        made_array(asarray(each, dtype=aval.dtype).reshape(aval.shape), weak_type=aval.weak_type)
        for each, aval in zip(numbers if primitive.multiple_results else [numbers], results, strict=True)
    ]
    return made if primitive.multiple_results else made[0]
