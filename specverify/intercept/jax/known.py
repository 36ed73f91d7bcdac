"""What JAX computes of numbers that are known, remembered: a run of an enumeration computes what the run before it did.

Arrays of JAX cannot be written to, so one that holds the same may stand for another. Words of 32 bits are left alone:
keys are made of them, which are others in every run.

What stands inside the functions that a primitive of JAX is given: whether they draw, and the floats they know.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from specverify.intercept.run import PROCESS
from specverify.intercept.unpatched import asarray
from specverify.laws import rounding

# Inside


DRAWS = {"random_bits", "random_gamma", "rng_bit_generator", "rng_uniform", "prng_random_bits"}
"""Primitives that make random numbers."""
CALLS_BACK = "pure_callback"
"""What calls Python, which may draw as well: it is followed to, and nothing of it is remembered."""
_INSIDE = ("jaxpr", "call_jaxpr", "branches", "cond_jaxpr", "body_jaxpr", "fun_jaxpr")
_HALVES = {"bfloat16", "float16"}


def draws_inside(parameters: dict[str, Any]) -> bool:
    """Return whether a function among the parameters of a primitive makes random numbers."""
    return any(_draws(each) for name in _INSIDE if name in parameters for each in _functions(parameters[name]))


def _functions(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (tuple, list)) else (found,)


def _draws(closed: Any) -> bool:
    jaxpr = getattr(closed, "jaxpr", closed)
    if not hasattr(jaxpr, "eqns"):
        return False
    before = PROCESS.jax_drawing.get(id(jaxpr))
    if before is None:
        result = any(each.primitive.name in {*DRAWS, CALLS_BACK} or draws_inside(each.params) for each in jaxpr.eqns)
        before = PROCESS.jax_drawing[id(jaxpr)] = (jaxpr, result)
    return before[1]


def halves_inside(parameters: dict[str, Any]) -> frozenset[Any]:
    """Return the floats of 16 bits that a function among the parameters of a primitive computes with."""
    inside = [each for name in _INSIDE if name in parameters for each in _functions(parameters[name])]
    return frozenset().union(*map(_halves, inside)) if inside else frozenset()


def _halves(closed: Any) -> frozenset[Any]:
    jaxpr = getattr(closed, "jaxpr", closed)
    if not hasattr(jaxpr, "eqns"):
        return frozenset()
    before = PROCESS.jax_halves.get(id(jaxpr))
    if before is None:
        result = {str(getattr(each.aval, "dtype", "")) for equation in jaxpr.eqns for each in equation.outvars}
        inside = frozenset().union(*(halves_inside(equation.params) for equation in jaxpr.eqns))
        before = PROCESS.jax_halves[id(jaxpr)] = (jaxpr, frozenset(result & _HALVES) | inside)
    return before[1]


# Known


MOST = 50_000
"""So many are remembered before all are forgotten."""
_LARGE = 4096


def computed_by_jax(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any = None) -> list[Any]:
    """Return what a primitive gives of known numbers; ``equation`` is where it stands, if it was traced."""
    key = _key(primitive, operands, parameters, equation)
    before = None if key is None else PROCESS.jax_computed.get(key)
    if before is None:
        result = primitive.bind(*operands, **parameters)
        results = list(result) if primitive.multiple_results else [result]
        dtypes = {getattr(each, "dtype", None) for each in results} | halves_inside(parameters)
        before = (equation, results, tuple(dtypes))
        if key is not None:
            before = (equation, [_standing_for(each) for each in results], tuple(dtypes))
            PROCESS.jax_computed[key] = before
            if len(PROCESS.jax_computed) > MOST:
                _forget()
    for dtype in before[2]:
        rounding.saw(dtype)
    return list(before[1])


def _forget() -> None:
    for memory in (PROCESS.jax_computed, PROCESS.jax_arrays, PROCESS.jax_ours):
        memory.clear()


def _key(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any) -> Hashable | None:
    """Return what tells one computation from others; None for one that is not remembered."""
    if primitive.name == CALLS_BACK:
        return None
    try:
        told = [_told(operand) for operand in operands]
        if None in told or (equation is not None and equation.effects):
            return None
        what: Hashable = id(equation) if equation is not None else (primitive, *parameters.items())
        key = what, bool(jax.config.jax_enable_x64), *told
        hash(key)
    except TypeError:
        return None
    return key


def _told(operand: Any) -> Hashable | None:
    """Return what tells an operand from others; None where it is not to be remembered."""
    if id(operand) in PROCESS.jax_ours:
        return id(operand)
    if not isinstance(operand, jax.Array):
        result = asarray(operand)
        return type(operand).__name__, str(result.dtype), result.shape, result.tobytes()
    result = _standing_for(operand)
    return id(result) if id(result) in PROCESS.jax_ours else None


def _standing_for(array: Any) -> Any:
    """Return the array that stands for all that hold the same; itself if it is not to be remembered."""
    if id(array) in PROCESS.jax_ours or not isinstance(array, jax.Array):
        return array
    kind = array.dtype
    if jax.dtypes.issubdtype(kind, jax.dtypes.extended) or kind == np.uint32 or array.size > _LARGE:
        return array
    content = (str(kind), array.weak_type, array.shape, str(array.sharding), asarray(array).tobytes())
    result = PROCESS.jax_arrays.setdefault(content, array)
    PROCESS.jax_ours[id(result)] = result
    return result
