"""JAX primitives that NumPy computes bit for bit: movement of elements, counting, single operations on floats.

JAX compiles a program for each primitive and each shape. A verifier is examined at many shapes, and most primitives of
an eager verifier move elements, count, or apply one IEEE operation, so those are computed by NumPy. Sums of floats and
functions such as ``log`` stay with JAX, which rounds them in its own way; so do operations with a subnormal number,
which JAX flushes to 0, a NaN or a negative zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import core
from jax._src.array import ArrayImpl

from specverify.intercept.cpython.patches import array as new_array
from specverify.intercept.cpython.patches import asarray
from specverify.intercept.run import PROCESS

Rule = Callable[..., Any]
"""``rule(parameters, *arrays)`` returns the NumPy array that the primitive returns."""

_PLAIN = {np.dtype(name) for name in ("bool", "int32", "int64", "uint32", "float32", "float64")}
_WHOLE = {np.dtype(name) for name in ("bool", "int32", "int64", "uint32")}
_FLOATS = {np.dtype("float32"), np.dtype("float64")}
_OF_FLOATS = {"lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "div", "max", "min"}
"""Operations with one rounding at most."""
_NOT_OF_BOOLS = {"add", "sub", "mul", "cumsum", "cumprod", "reduce_sum", "reduce_prod"}


def filler(parameters: dict[str, Any], dtype: Any) -> Any:
    """Return the value that a gather returns for indices out of range: ``fill_value``, or JAX's default."""
    value, kind = parameters.get("fill_value"), np.dtype(dtype).kind
    if value is not None:
        return new_array(value).astype(dtype).item()
    if kind == "b":
        return True
    if kind in "iu":
        info = np.iinfo(dtype)
        return int(info.max if kind == "u" else info.min)
    return float("nan")


def _broadcast(parameters: dict[str, Any], array: Any) -> Any:
    shape, places = parameters["shape"], parameters["broadcast_dimensions"]
    sizes = dict(zip(places, array.shape, strict=True))
    return np.broadcast_to(array.reshape([sizes.get(axis, 1) for axis in range(len(shape))]), shape)


def _slice(parameters: dict[str, Any], array: Any) -> Any:
    first, last = parameters["start_indices"], parameters["limit_indices"]
    steps = parameters["strides"] or (1,) * len(first)
    return array[tuple(map(slice, first, last, steps))]


def _dynamic_slice(parameters: dict[str, Any], array: Any, *starts: Any) -> Any:
    sizes = parameters["slice_sizes"]
    first = [
        min(max(int(start), 0), whole - size) for start, whole, size in zip(starts, array.shape, sizes, strict=True)
    ]
    return array[tuple(slice(start, start + size) for start, size in zip(first, sizes, strict=True))]


def _select(parameters: dict[str, Any], which: Any, *cases: Any) -> Any:
    return np.where(which, cases[1], cases[0])


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
        inside = [
            min(max(first, 0), whole - size) for first, whole, size in zip(start, array.shape, sizes, strict=True)
        ]
        if fills and inside != start:
            result[place] = filler(parameters, array.dtype)
            continue
        window = array[tuple(slice(first, first + size) for first, size in zip(inside, sizes, strict=True))]
        result[place] = window.reshape(kept)
    rank = result.ndim
    return np.moveaxis(result, range(rank - len(kept), rank), numbers.offset_dims)


_MOVES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "select_n": _select,
    "reshape": lambda parameters, array: array.reshape(parameters["new_sizes"]),
    "squeeze": lambda parameters, array: np.squeeze(array, parameters["dimensions"]),
    "transpose": lambda parameters, array: np.transpose(array, parameters["permutation"]),
    "rev": lambda parameters, array: np.flip(array, parameters["dimensions"]),
    "concatenate": lambda parameters, *arrays: np.concatenate(arrays, parameters["dimension"]),
    "dynamic_slice": _dynamic_slice,
    "gather": _gather,
}
"""Movement of elements of any dtype."""


def _scan(function: Any) -> Rule:
    def rule(parameters: dict[str, Any], array: Any) -> Any:
        axis, reverse = parameters["axis"], parameters["reverse"]
        turned = np.flip(array, axis) if reverse else array
        result = function.accumulate(turned, axis, dtype=array.dtype)
        return np.flip(result, axis) if reverse else result

    return rule


def _reduction(function: Any) -> Rule:
    return lambda parameters, array: function.reduce(array, axis=tuple(parameters["axes"]), dtype=array.dtype)


def _pair(function: Any) -> Rule:
    return lambda parameters, *arrays: function(*arrays)


_COUNTS: dict[str, Rule] = {
    **{name: _pair(getattr(np, known_as)) for name, known_as in (
        ("lt", "less"), ("le", "less_equal"), ("gt", "greater"), ("ge", "greater_equal"), ("eq", "equal"),
        ("ne", "not_equal"), ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"),
        ("max", "maximum"),
        ("min", "minimum"), ("and", "bitwise_and"), ("or", "bitwise_or"), ("xor", "bitwise_xor"),
        ("not", "bitwise_not"))},
    **{name: _scan(getattr(np, known_as)) for name, known_as in (("cumsum", "add"), ("cumprod", "multiply"))},
    **{name: _reduction(getattr(np, known_as)) for name, known_as in (
        ("reduce_sum", "add"), ("reduce_prod", "multiply"), ("reduce_max", "maximum"), ("reduce_min", "minimum"),
        ("reduce_and", "logical_and"), ("reduce_or", "logical_or"))},
    "convert_element_type": lambda parameters, array: array,
}  # fmt: skip
"""Operations on integers and bools. A conversion of those to floats rounds as NumPy does."""


def _iota(parameters: dict[str, Any]) -> Any:
    shape, axis = parameters["shape"], parameters["dimension"]
    places = [size if place == axis else 1 for place, size in enumerate(shape)]
    return np.broadcast_to(np.arange(shape[axis], dtype=parameters["dtype"]).reshape(places), shape)


def rule_of(primitive: Any, operands: Sequence[Any], results: Sequence[Any], parameters: dict[str, Any]) -> Rule | None:
    """Return the rule of a primitive for operands and results of these avals; None if JAX must compute it."""
    name, kinds = primitive.name, [getattr(aval, "dtype", None) for aval in (*operands, *results)]
    if not all(kind in _PLAIN for kind in kinds) or parameters.get("sharding") is not None:
        return None
    if name == "iota":
        return _iota if kinds == [np.dtype(np.int32)] and not operands else None
    if name in _COUNTS:
        allowed = _WHOLE - {np.dtype(bool)} if name in _NOT_OF_BOOLS else _WHOLE
        given = set(kinds[: len(operands)])
        exact = given <= (set() if name == "div" else allowed) or (name in _OF_FLOATS and given <= _FLOATS)
        return _COUNTS[name] if exact else None
    if name == "select_n" and (kinds[0] != np.bool_ or len(operands) != 3):
        return None
    return None if name == "reshape" and parameters.get("dimensions") is not None else _MOVES.get(name)


def _is_ordinary(array: Any) -> bool:
    """Return whether a float array has no NaN, no negative zero and no subnormal number; True for other arrays."""
    if array.dtype not in _FLOATS:
        return True
    small = np.abs(array) < np.finfo(array.dtype).tiny
    return not (np.isnan(array) | (small & ((array != 0) | np.signbit(array)))).any()


def is_exact(closed: Any) -> bool:
    """Return whether NumPy computes a traced function as its compiled program does.

    It may have one operation on floats, because a compiled program may fuse two of them into one rounding.
    """
    count = _float_operations(closed)
    return count is not None and count <= 1


def _float_operations(closed: Any) -> int | None:
    """Return how many operations on floats a traced function has; None if JAX must compute one of its equations."""
    jaxpr = getattr(closed, "jaxpr", closed)
    before = PROCESS.jax_exact.get(id(jaxpr))
    if before is None:
        counts = [_of_equation(equation) for equation in jaxpr.eqns]
        known = [count for count in counts if count is not None]
        before = PROCESS.jax_exact[id(jaxpr)] = (jaxpr, sum(known) if len(known) == len(counts) else None)
    return before[1]


def _of_equation(equation: Any) -> int | None:
    if equation.primitive.name in {"jit", "pjit"}:
        return _float_operations(equation.params["jaxpr"])
    operands, results = ([each.aval for each in side] for side in (equation.invars, equation.outvars))
    if rule_of(equation.primitive, operands, results, equation.params) is None:
        return None
    floats = any(operand.dtype in _FLOATS for operand in operands)
    return int(floats and equation.primitive.name in _OF_FLOATS)


def computed_by_numpy(primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> Any | None:
    """Return the result of a primitive on concrete numbers as a JAX array; None if JAX must compute it."""
    name = primitive.name
    if name not in _MOVES and name not in _COUNTS and name != "iota":
        return None
    if any(getattr(operand, "committed", False) for operand in operands):
        return None
    avals = [core.typeof(operand) for operand in operands]
    aval, _ = primitive.abstract_eval(*avals, **parameters)
    rule = rule_of(primitive, avals, [aval], parameters)
    if rule is None:
        return None
    arrays = [asarray(operand, dtype=each.dtype) for operand, each in zip(operands, avals, strict=True)]
    with np.errstate(all="ignore"):
        numbers = rule(parameters, *arrays)
    if name in _OF_FLOATS and not all(map(_is_ordinary, (*arrays, numbers))):
        return None
    with core.eval_context():
        result = jax.device_put(np.ascontiguousarray(numbers, dtype=aval.dtype).reshape(aval.shape))
    if result.aval.weak_type == aval.weak_type:
        return result
    weak = core.ShapedArray(aval.shape, aval.dtype, weak_type=aval.weak_type)
    return ArrayImpl(weak, result.sharding, [result], committed=False)
