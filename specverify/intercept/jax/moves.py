"""Operations that move elements about and look at none: the same is done to their places, by JAX itself."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from numpy import array, empty  # by name: inside a block NumPy has others

from specverify.intercept.jax.lazy import concrete, elements_of
from specverify.intercept.refusals import Declined

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
        _picked(np.asarray(found), everything, parameters, result) for found, result in zip(made, results, strict=True)
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
    found = primitive.bind(*operands, **parameters)
    return list(found) if primitive.multiple_results else [found]


def _picked(places: Any, everything: list[Any], parameters: dict[str, Any], result: Any) -> np.ndarray[Any, Any]:
    found = empty(places.shape, dtype=object)
    for index in np.ndindex(places.shape):
        place = int(places[index])
        found[index] = everything[place - 1] if place > 0 else _filler(parameters, result.dtype)
    return found


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
