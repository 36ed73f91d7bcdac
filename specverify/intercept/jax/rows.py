"""Operations of JAX along an axis, and those that move elements.

Operations along an axis: sums and products that look no further than they must, races, orders.

Operations that move elements about and look at none: the same is done to their places, by JAX itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import jax
import numpy as np

from specverify.intercept.caller import caller
from specverify.intercept.jax.arrays import Truth, concrete, elements_of, number, placed
from specverify.intercept.jax.draws import Bits
from specverify.intercept.jax.elementwise import Handler, is_count
from specverify.intercept.refusals import Declined, NeedsValue
from specverify.intercept.symbolic.continuous import MOST_ORDERED, Continuous, Extreme, at_rank, largest_of
from specverify.intercept.symbolic.deferred import Count, Deferred, Product, is_open, known
from specverify.intercept.symbolic.elementwise import applied
from specverify.intercept.symbolic.joined import SYMBOLIC, Joined
from specverify.intercept.symbolic.races import ranked_from_either_end, winner
from specverify.intercept.unpatched import array, empty

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
    """Return the handler of what is made of all elements so far."""

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
    """Answer ``sort`` of one array, others with it: of random numbers by their race, of outcomes when looked at."""
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
    """Return the element of a row at a place; it is looked at with it, unless it has no value."""
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
    """Return how many operands hold what is moved; the others say where."""
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
    """Return what stands where nothing is read: ``fill_value``, or what JAX takes for it."""
    value, kind = parameters.get("fill_value"), np.dtype(dtype).kind
    if value is not None:
        return array(value).astype(dtype).item()
    if kind == "b":
        return True
    if kind in "iu":
        info = np.iinfo(dtype)
        return int(info.max if kind == "u" else info.min)
    return float("nan")
