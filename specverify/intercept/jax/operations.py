"""JAX operations on symbolic elements: element-wise, along an axis, and movement of elements.

Element-wise: comparisons, choices and conversions stay symbolic until they are read. Along an axis: sums and products
read no more elements than necessary; races and orders. Movement: JAX itself moves the positions, and no element is
read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import numpy as np

from specverify.intercept import audit
from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import array, broadcast_to, empty
from specverify.intercept.jax.arrays import Truth, concrete, elements_of, number, placed
from specverify.intercept.jax.draws import Bits
from specverify.intercept.refusals import Declined, NeedsValue, is_declined
from specverify.intercept.symbolic.continuous import (
    MOST_ORDERED,
    SYMBOLIC,
    Continuous,
    Extreme,
    Joined,
    at_rank,
    is_whole,
    largest_of,
)
from specverify.intercept.symbolic.deferred import Count, Deferred, Product, is_open, known
from specverify.intercept.symbolic.primitives import OF_JAX, Family, answered, applied, names_of, rules_of, whole_part
from specverify.intercept.symbolic.races import ranked_from_either_end, winner
from specverify.laws import rounding

# Element-wise

# Elementwise


Handler = Callable[[list[Any], dict[str, Any], Any], Any]
"""``handler(operands, parameters, result)``: the elements of what comes out; ``result`` is its shape and dtype."""

_ALGEBRA = names_of(OF_JAX, Family.ARITHMETIC, Family.CLAMP)
_WHOLE_PARTS = names_of(OF_JAX, Family.WHOLE_PART)
_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: rule for name, rule in rules_of(OF_JAX, "outcome").items() if name in _ALGEBRA},
    "not": lambda value: ~value,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
"""What is said of outcomes, in the dtype they have; what is not here is looked at and computed by JAX."""
_CLAMPED_HALVES = Declined("random numbers of 16 bits are clamped: too many of them equal the bound")
_TINIEST = 1e-30
"""A summand below this changes no uniform number that a generator returns but 0."""


def each(function: Callable[..., Any], operands: list[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Return what a function gives of the elements of operands of one shape, or of none."""
    arrays = [elements_of(operand) for operand in operands]
    columns = [(array if array.shape == shape else broadcast_to(array, shape)).ravel().tolist() for array in arrays]
    outcome = empty(shape, dtype=object)
    flat = outcome.reshape(-1)  # the same elements
    for place, elements in enumerate(zip(*columns, strict=True)):
        flat[place] = function(*elements)
    return outcome


def _summand_is_nothing(name: str, left: Any, right: Any) -> bool:
    return name == "add" and isinstance(left, Continuous) and not left.steps and 0 < abs(right) < _TINIEST


def _algebra(name: str, *elements: Any) -> Any:
    numbers = [number(element) for element in elements]
    if name == "add" and len(numbers) == 2:
        for value, other in (numbers, numbers[::-1]):
            if not isinstance(other, SYMBOLIC) and _summand_is_nothing(name, value, other):
                return value
    return applied(name, *numbers)


def _whole(elements: np.ndarray[Any, Any]) -> Any:
    """Return elements; if the rule of one of them declined, why."""
    return next(filter(is_declined, elements.flat), elements)


def arithmetic(primitive: str) -> Handler:
    """Return the handler of an operation that makes numbers of numbers."""
    name, of_outcomes = _ALGEBRA.get(primitive), _NUMPY.get(primitive)
    no_rule = Declined(f"there is no rule for {primitive} of random numbers")
    clamps = primitive in names_of(OF_JAX, Family.CLAMP)

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        halves = clamps and rounding.is_of_16_bits(result.dtype)

        def one(*elements: Any) -> Any:
            if any(isinstance(element, SYMBOLIC) for element in elements):
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

        outcome = each(one, operands, result.shape)
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
    if primitive == "mul" and all(map(is_count, elements)):
        return Product(elements)
    if primitive in {"add", "add_any"} and all(map(is_count, elements)):
        return Count(elements)
    return Deferred(lambda: typed(function, dtype, [known(element) for element in elements]))


def typed(function: Callable[..., Any], dtype: Any, numbers: list[Any]) -> Any:
    """Return what a function of NumPy gives of numbers of a dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*(np.asarray(value).astype(dtype) for value in numbers))).astype(dtype).item()


_OF_TRUTHS: dict[str, Callable[..., Any]] = {
    "and": lambda left, right: Product((left, right)),
    "mul": lambda left, right: Product((left, right)),
    "min": lambda left, right: Product((left, right)),
    "or": lambda left, right: Truth(lambda: int(bool(known(left)) or bool(known(right)))),
    "max": lambda left, right: Truth(lambda: int(bool(known(left)) or bool(known(right)))),
    "xor": lambda left, right: Truth(lambda: int(bool(known(left)) != bool(known(right)))),
    "not": lambda value: Truth(lambda: int(not known(value))),
}


def is_count(element: Any) -> bool:
    """Return whether an outcome is known to be a non-negative integer."""
    if isinstance(element, Product):
        return all(map(is_count, element._parts))  # noqa: SLF001 - of the room
    whole = isinstance(element, (bool, int)) and element >= 0
    return whole or isinstance(element, (Truth, Count))


# Other operations of one element, or of several


def _power_of_integer(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    exponent = parameters["y"]
    name = "square" if exponent == 2 else "power"
    more = () if name == "square" else (float(exponent),)
    return each(lambda element: applied(name, number(element), *more), operands, result.shape)


def _clamped(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    if rounding.is_of_16_bits(result.dtype):
        return _CLAMPED_HALVES
    order = [operands[1], operands[0], operands[2]]
    if any(isinstance(element, SYMBOLIC) for each_one in order for element in elements_of(each_one).flat):
        return each(lambda *elements: applied("clip", *map(number, elements)), order, result.shape)
    return Declined("a clamp of numbers that are not random")


def _whole_part(name: str) -> Handler:
    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        def one(element: Any) -> Any:
            if isinstance(element, SYMBOLIC) and name != "sign":
                return whole_part(name, element, caller())
            place = caller()
            return Deferred(lambda: placed(place, lambda: applied(name, number(element))))

        return each(one, operands, result.shape)

    return handler


def _rest(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Answer ``rem``: of random bits one of several integers, of other random numbers the ``fmod`` of C."""

    def one(left: Any, right: Any) -> Any:
        if isinstance(left, Bits) and not is_open(right):
            return left.rest(int(known(right)))
        if isinstance(left, SYMBOLIC) or isinstance(right, SYMBOLIC):
            return applied("fmod", number(left), number(right))
        return Deferred(lambda: typed(np.fmod, result.dtype, [known(left), known(right)]))

    return each(one, operands, result.shape)


def _shifted(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(left: Any, right: Any) -> Any:
        return (
            left.shifted(int(known(right)))
            if isinstance(left, Bits) and not is_open(right)
            else Declined("only random bits are shifted")
        )

    outcome = each(one, operands, result.shape)
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
    outcome = each(one, operands, result.shape)
    return _whole(outcome)


def _same_elements(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    return operands[0].elements


_AS_THEY_ARE = ("copy", "copy_p", "device_put", "sharding_constraint", "reduce_precision", "optimization_barrier",
                "stage", "real", "reshard", "layout_constraint")  # fmt: skip
ELEMENTWISE: dict[str, Handler] = {
    **{name: arithmetic(name) for name in dict.fromkeys((*_ALGEBRA, *_NUMPY))},
    **{name: _whole_part(known_as) for name, known_as in _WHOLE_PARTS.items()},
    **dict.fromkeys(_AS_THEY_ARE, _same_elements),
    "integer_pow": _power_of_integer,
    "clamp": _clamped,
    "rem": _rest,
    "shift_right_logical": _shifted,
    "bitcast_convert_type": _read_as,
}


# Choices


_RELATIONS = names_of(OF_JAX, Family.COMPARISON)


def compared(primitive: str) -> Handler:
    """Return the handler of a comparison, which is answered when it is read."""
    name = _RELATIONS[primitive]
    smaller, or_equal = {"less": (0, 0), "less_equal": (0, 1), "greater": (1, 0), "greater_equal": (1, 1)}.get(
        name, (0, 0)
    )

    def compare(place: str, left: Any, right: Any) -> Any:
        if primitive.endswith("_to"):
            left, right = _last_if_nan(left), _last_if_nan(right)
        if not (is_open(left) or is_open(right)):
            return int(answered(name, known(left), known(right)))
        if isinstance(left, SYMBOLIC) or isinstance(right, SYMBOLIC):
            return Truth(lambda: int(answered(name, number(left), number(right), place=place)))
        small, large = (left, right)[:: -1 if smaller else 1]
        if name not in {"equal", "not_equal"} and isinstance(small, Count) and not is_open(large):
            return Truth(lambda: int(small.below(known(large) + or_equal)))
        return Truth(lambda: int(answered(name, known(left), known(right))))

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        for operand in operands:
            rounding.saw(operand.dtype)
        return each(partial(compare, audit.place()), operands, result.shape)

    return handler


def _last_if_nan(element: Any) -> Any:
    """Return infinity for NaN, which comes last in a total order."""
    return math.inf if isinstance(element, float) and math.isnan(element) else element


def _is_finite(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    def one(element: Any) -> Any:
        if isinstance(element, SYMBOLIC):
            return 1
        return Truth(lambda: int(math.isfinite(known(element))))

    return each(one, operands, result.shape)


def _chosen(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Answer ``select_n``. The condition is forced only if it selects a random number."""

    def one(which: Any, *cases: Any) -> Any:
        if not is_open(which):
            return cases[int(known(which))]
        if all(case is cases[0] for case in cases) or all(_same(case, cases[0]) for case in cases):
            return cases[0]
        if any(isinstance(case, SYMBOLIC) for case in cases):
            return cases[int(known(which))]
        kind = Truth if all(isinstance(case, (Truth, bool)) or case in (0, 1) for case in cases) else Deferred
        return kind(lambda: known(cases[int(known(which))]))

    return each(one, operands, result.shape)


def _same(left: Any, right: Any) -> bool:
    plain = not isinstance(left, Deferred) and not isinstance(right, Deferred)
    return plain and type(left) is type(right) and left == right


def _of_unknown(element: Any, to: Any, *, into_floats: bool) -> Any:
    if into_floats:
        return element
    if to == np.bool_:
        return Truth(lambda: int(answered("not_equal", element, 0.0)))
    return element if isinstance(element, Continuous) and is_whole(element) else whole_part("trunc", element, caller())


def _converted(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
    """Answer ``convert_element_type``: a random number has no digits to lose; a whole part is drawn."""
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

    return each(one, operands, result.shape)


CHOICES: dict[str, Handler] = {
    **{name: compared(name) for name in _RELATIONS},
    "is_finite": _is_finite,
    "select_n": _chosen,
    "convert_element_type": _converted,
}


# Rows

# Orders


Make = Callable[[Sequence[Any], Any], Any]
"""What is made of a row of elements, and the shape and dtype that come out."""


def _typed_sum(row: Sequence[Any], dtype: Any, function: Any) -> Any:
    return function(np.array([known(element) for element in row], dtype=dtype)).astype(dtype).item()


def _sum(row: Sequence[Any], result: Any) -> Any:
    if any(isinstance(element, SYMBOLIC) for element in row):
        return reduce(partial(applied, "add"), map(number, row))
    if not any(map(is_open, row)):
        return _typed_sum(row, result.dtype, np.sum)
    if all(map(is_count, row)):
        return Count(row)
    return Deferred(lambda: _typed_sum(row, result.dtype, np.sum))


def _product(row: Sequence[Any], result: Any) -> Any:
    if any(isinstance(element, SYMBOLIC) for element in row):
        return reduce(partial(applied, "multiply"), map(number, row))
    if not any(map(is_open, row)):
        return _typed_sum(row, result.dtype, np.prod)
    return Product(row) if all(map(is_count, row)) else Deferred(lambda: _typed_sum(row, result.dtype, np.prod))


def _any(row: Sequence[Any], result: Any) -> Any:
    return Truth(lambda: int(any(bool(known(element)) for element in row)))


def _all(row: Sequence[Any], result: Any) -> Any:
    return Truth(lambda: int(all(bool(known(element)) for element in row)))


def _extreme(row: Sequence[Any], result: Any, *, largest: bool) -> Any:
    if any(isinstance(element, SYMBOLIC) for element in row):
        return largest_of(tuple(map(number, row)), largest=largest)
    if all(isinstance(element, Truth) or element in (0, 1) for element in row):
        return _any(row, result) if largest else _all(row, result)
    return Deferred(lambda: (max if largest else min)(map(known, row)))


def _place_of_extreme(row: Sequence[Any], result: Any, *, largest: bool) -> Any:
    place = caller()
    return Deferred(lambda: placed(place, lambda: _winner(row, largest=largest, place=place)))


def _winner(row: Sequence[Any], *, largest: bool, place: str) -> int:
    if any(isinstance(element, SYMBOLIC) for element in row):
        return winner([number(element) for element in row], largest=largest, place=place)
    if all(isinstance(element, Truth) or element in (0, 1) for element in row):
        return next((index for index, element in enumerate(row) if bool(known(element)) == largest), 0)
    values = np.array([known(element) for element in row])
    return int(values.argmax() if largest else values.argmin())


def reduced(make: Make) -> Handler:
    """Return the handler of a reduction over ``axes``."""

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        if make in (_any, _all) and operands[0].dtype != np.bool_:
            return Declined("a reduction of bools is given other numbers")
        elements, axes = elements_of(operands[0]), parameters["axes"]
        _refuse_bits(elements)
        kept = [axis for axis in range(elements.ndim) if axis not in axes]
        rows = elements.transpose(*kept, *axes).reshape(*(elements.shape[axis] for axis in kept), -1)
        outcome = empty(rows.shape[:-1], dtype=object)
        for index in np.ndindex(outcome.shape):
            outcome[index] = make(list(rows[index]), result)
        return outcome

    return handler


def running(make: Make) -> Handler:
    """Return the handler of a scan over all preceding elements."""

    def handler(operands: list[Any], parameters: dict[str, Any], result: Any) -> Any:
        axis, backwards = parameters["axis"], parameters["reverse"]
        rows = np.moveaxis(elements_of(operands[0]), axis, -1)
        _refuse_bits(rows)
        outcome = empty(rows.shape, dtype=object)
        for *row, place in np.ndindex(rows.shape):
            so_far = rows[tuple(row)][place:][::-1] if backwards else rows[tuple(row)][: place + 1]
            outcome[(*row, place)] = make(list(so_far), result) if len(so_far) > 1 else so_far[0]
        return np.moveaxis(outcome, -1, axis)

    return handler


def _refuse_bits(elements: Any) -> None:
    if any(isinstance(element, Bits) for element in elements.flat):
        raise NeedsValue("order-of-joined", "random bits are put together or in an order as they are")


def ordered(operands: list[Any], parameters: dict[str, Any], results: Any) -> Any:
    """Answer ``sort`` of one array with others: random numbers by their race, outcomes when they are read."""
    if parameters["num_keys"] != 1:
        return Declined("a sort by several keys has no rule")
    arrays = [np.moveaxis(elements_of(operand), parameters["dimension"], -1) for operand in operands]
    outcome = [empty(each.shape, dtype=object) for each in arrays]
    for index in np.ndindex(*arrays[0].shape[:-1]):
        keys = _in_turn(list(arrays[0][index]))
        places, values = _order(keys, range(len(keys)), largest=False)
        for at, (out, each) in enumerate(zip(outcome, arrays, strict=True)):
            row = list(each[index])
            for rank, place in enumerate(places):
                out[(*index, rank)] = values[rank] if at == 0 else _at(row, place)
    return [np.moveaxis(each, -1, parameters["dimension"]) for each in outcome]


def best(operands: list[Any], parameters: dict[str, Any], results: Any) -> Any:
    """Answer ``top_k``."""
    axis = parameters.get("axis", -1)
    rows = np.moveaxis(elements_of(operands[0]), axis, -1)
    shape = (*rows.shape[:-1], parameters["k"])
    values, places = empty(shape, dtype=object), empty(shape, dtype=object)
    for index in np.ndindex(*shape[:-1]):
        outcome = _order(_in_turn(list(rows[index])), range(parameters["k"]), largest=True)
        places[index], values[index] = outcome
    return [np.moveaxis(each, -1, axis) for each in (values, places)]


def _in_turn(row: list[Any]) -> list[Any]:
    """Return a row with uniform numbers for random bits: they are in the same order."""
    words = [element.source.width == element.kept for element in row if isinstance(element, Bits)]
    if words and (len(words) < len(row) or not all(words)):
        raise NeedsValue("order-of-joined", "random bits are put in an order with something else")
    return [Continuous(element.source.uniform) if isinstance(element, Bits) else element for element in row]


def _order(row: list[Any], ranks: range, *, largest: bool) -> tuple[list[Any], list[Any]]:
    """Return the places of what comes at each rank, and the values."""
    place = caller()
    if not any(isinstance(element, SYMBOLIC) for element in row):
        order = Deferred(lambda: _of_numbers([known(element) for element in row], largest=largest))
        places = [Deferred(partial(_entry, order, rank)) for rank in ranks]
        return places, [_at(row, each) for each in places]
    entries = [number(element) for element in row]

    def ask(rank: int) -> int:
        return int(
            placed(
                place, lambda: ranked_from_either_end(entries, rank, largest=largest, first_of_ties=True, place=place)
            )
        )

    places = [Deferred(partial(ask, rank)) for rank in ranks]
    return places, [_value(entries, rank, largest=largest) for rank in ranks]


def _entry(order: Deferred, rank: int) -> int:
    return int(order.value()[rank])


def _of_numbers(row: list[Any], *, largest: bool) -> Any:
    numbers = np.array(row)
    return np.argsort(-numbers.astype(np.float64) if largest else numbers, kind="stable")


def _at(row: list[Any], place: Deferred) -> Any:
    """Return the element of a row at a position; forced together with the position, unless it has no value."""
    if any(isinstance(element, SYMBOLIC) for element in row):
        return row[int(known(place))]
    return Deferred(lambda: known(row[int(known(place))]))


def _value(entries: list[Any], rank: int, *, largest: bool) -> Any:
    if rank == 0:
        return largest_of(tuple(entries), largest=largest)
    if len(entries) <= MOST_ORDERED and not any(map(_has_no_place, entries)):
        return at_rank(tuple(entries), rank, largest=largest)
    return Deferred(_refused)


def _refused() -> Any:
    raise NeedsValue("order-alone-is-known", "the value of one of several random numbers is needed, not only its place")


def _has_no_place(part: Any) -> bool:
    return isinstance(part, Extreme | Joined) or (not isinstance(part, SYMBOLIC) and math.isnan(part))


ROWS: dict[str, Handler] = {
    "reduce_sum": reduced(_sum),
    "reduce_prod": reduced(_product),
    "reduce_or": reduced(_any),
    "reduce_and": reduced(_all),
    "reduce_max": reduced(partial(_extreme, largest=True)),
    "reduce_min": reduced(partial(_extreme, largest=False)),
    "argmax": reduced(partial(_place_of_extreme, largest=True)),
    "argmin": reduced(partial(_place_of_extreme, largest=False)),
    "cumsum": running(_sum),
    "cumprod": running(_product),
    "cummax": running(partial(_extreme, largest=True)),
    "cummin": running(partial(_extreme, largest=False)),
}
SEVERAL: dict[str, Handler] = {"sort": ordered, "top_k": best}
"""What gives several arrays."""


# Moves


_ONE = ("broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "rev", "expand_dims", "dynamic_slice",
        "gather", "split", "unstack", "broadcast")  # fmt: skip
_PUT = "scatter"
_TWO = ("pad", "dynamic_update_slice", _PUT)


def moved(primitive: Any, operands: list[Any], parameters: dict[str, Any], results: list[Any]) -> Any:
    """Return the elements of what comes out of an operation that moves them; ``Declined`` for another one."""
    name = primitive.name
    if name == _PUT:  # what is put stands behind the places
        operands = [operands[0], operands[2], operands[1]]
    data = _data(name, operands)
    if data is None:
        return Declined(f"there is no rule for {name} of random numbers")
    pool: list[list[Any]] = []
    places = []
    for operand in operands[:data]:
        elements = elements_of(operand)
        first = sum(len(part) for part in pool) + 1
        places.append(np.arange(first, first + elements.size, dtype=np.int32).reshape(elements.shape))
        pool.append(list(elements.ravel()))
    rest = [concrete(operand) for operand in operands[data:]]
    made = _of_places(name, primitive, [*places, *rest], parameters)
    everything = [element for part in pool for element in part]
    return [
        _picked(np.asarray(outcome), everything, parameters, result)
        for outcome, result in zip(made, results, strict=True)
    ]


def _data(name: str, operands: list[Any]) -> int | None:
    """Return the number of operands that hold the moved data; the others are indices."""
    if name == "concatenate":
        return len(operands)
    return 1 if name in _ONE else 2 if name in _TWO else None


def _of_places(name: str, primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    if name == _PUT:
        keep = ("indices_are_sorted", "unique_indices", "mode")
        operand, updates, where = operands
        more = {key: parameters[key] for key in keep}
        return [jax.lax.scatter(operand, where, updates, parameters["dimension_numbers"], **more)]
    if name == "gather":
        parameters = {**parameters, "fill_value": 0}
    outcome = primitive.bind(*operands, **parameters)
    return list(outcome) if primitive.multiple_results else [outcome]


def _picked(places: Any, everything: list[Any], parameters: dict[str, Any], result: Any) -> np.ndarray[Any, Any]:
    outcome = empty(places.shape, dtype=object)
    for index in np.ndindex(places.shape):
        place = int(places[index])
        outcome[index] = everything[place - 1] if place > 0 else _filler(parameters, result.dtype)
    return outcome


def _filler(parameters: dict[str, Any], dtype: Any) -> Any:
    """Return the fill value of positions that are not read: ``fill_value``, or JAX's default."""
    value, kind = parameters.get("fill_value"), np.dtype(dtype).kind
    if value is not None:
        return array(value).astype(dtype).item()
    if kind == "b":
        return True
    if kind in "iu":
        info = np.iinfo(dtype)
        return int(info.max if kind == "u" else info.min)
    return float("nan")
