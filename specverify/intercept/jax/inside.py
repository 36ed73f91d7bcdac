"""What stands inside the functions that a primitive of JAX is given: whether they draw, and the floats they know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specverify.intercept.run import PROCESS

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
        found = any(each.primitive.name in {*DRAWS, CALLS_BACK} or draws_inside(each.params) for each in jaxpr.eqns)
        before = PROCESS.jax_drawing[id(jaxpr)] = (jaxpr, found)
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
        found = {str(getattr(each.aval, "dtype", "")) for equation in jaxpr.eqns for each in equation.outvars}
        inside = frozenset().union(*(halves_inside(equation.params) for equation in jaxpr.eqns))
        before = PROCESS.jax_halves[id(jaxpr)] = (jaxpr, frozenset(found & _HALVES) | inside)
    return before[1]
