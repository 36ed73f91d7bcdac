"""Properties of functions that JAX has traced: whether they draw, their 16-bit floats, and whether NumPy is exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from specverify.intercept.jax.operations import DIVISIONS, numpy_rule, rounds
from specverify.intercept.run import PROCESS

DRAWS = {"random_bits", "random_gamma", "rng_bit_generator", "rng_uniform", "prng_random_bits"}
"""Primitives that draw random numbers."""
CALLS_BACK = "pure_callback"
"""The primitive that calls Python, which may draw. It is executed every time; its results are not cached."""
_INSIDE = ("jaxpr", "call_jaxpr", "branches", "cond_jaxpr", "body_jaxpr", "fun_jaxpr")
_HALVES = {"bfloat16", "float16"}
COMPILED = {"jit", "pjit"}
"""Primitives that call a traced function which JAX compiles; JAX executes them if all operands are concrete."""
Answer = TypeVar("Answer")


def draws_inside(parameters: dict[str, Any]) -> bool:
    """Return whether a primitive that calls traced functions, such as ``while``, draws random numbers inside them.

    The functions are among its ``parameters``.
    """
    return any(function_draws(each) for name in _INSIDE if name in parameters for each in _functions(parameters[name]))


def _functions(found: Any) -> Sequence[Any]:
    return found if isinstance(found, (tuple, list)) else (found,)


def _once_for(memory: dict[int, tuple[Any, Answer]], closed: Any, answer: Callable[[Sequence[Any]], Answer]) -> Answer:
    """Return ``answer(equations)`` for the equations of ``closed``, a function traced by JAX.

    The result is computed once for each function and stored in ``memory``, which maps the identity of a function to the
    function and its result.
    """
    jaxpr = getattr(closed, "jaxpr", closed)
    before = memory.get(id(jaxpr))
    if before is None:
        before = memory[id(jaxpr)] = (jaxpr, answer(getattr(jaxpr, "eqns", ())))
    return before[1]


def function_draws(closed: Any) -> bool:
    """Return whether ``closed``, a function traced by JAX, draws random numbers or calls Python."""

    def answer(equations: Sequence[Any]) -> bool:
        return any(map(is_repeated, equations))

    return _once_for(PROCESS.jax.drawing, closed, answer)


def halves_inside(parameters: dict[str, Any]) -> frozenset[Any]:
    """Return the names of the 16-bit float dtypes in which a traced function among ``parameters`` computes.

    ``parameters`` are those of a primitive, such as ``while``.
    """
    inside = [each for name in _INSIDE if name in parameters for each in _functions(parameters[name])]
    return frozenset().union(*map(_halves, inside)) if inside else frozenset()


def _halves(closed: Any) -> frozenset[Any]:
    def answer(equations: Sequence[Any]) -> frozenset[Any]:
        result = {str(getattr(each.aval, "dtype", "")) for equation in equations for each in equation.outvars}
        return frozenset(result & _HALVES).union(*(halves_inside(equation.params) for equation in equations))

    return _once_for(PROCESS.jax.halves, closed, answer)


def is_exact(closed: Any) -> bool:
    """Return whether NumPy computes the traced function ``closed`` bit for bit as its compiled program does.

    True only if the function has at most one operation on floats. A division must be its only operation, of one
    argument by another.
    """
    names = _once_for(PROCESS.jax.exact, closed, _roundings)
    return names is not None and len(names) <= 1 and (DIVISIONS.isdisjoint(names) or _only_combines_arguments(closed))


def _roundings(equations: Sequence[Any]) -> tuple[str, ...] | None:
    """Return the names of the operations on floats in a traced function that consists of ``equations``.

    Returns None if NumPy cannot compute one of the equations.
    """
    result: list[str] = []
    for equation in equations:
        if equation.primitive.name in COMPILED:
            names = _once_for(PROCESS.jax.exact, equation.params["jaxpr"], _roundings)
            if names is None:
                return None
            result += names
            continue
        operands, results = ([each.aval for each in side] for side in (equation.invars, equation.outvars))
        if numpy_rule(equation.primitive, operands, results, equation.params) is None:
            return None
        if rounds(equation.primitive, operands):
            result.append(equation.primitive.name)
    return tuple(result)


def _only_combines_arguments(closed: Any) -> bool:
    """Return whether the traced function ``closed`` is a single operation on its own arguments, without constants.

    An operation inside another ``jit`` counts too. NumPy divides such arguments exactly as compiled code does; a
    divisor that is computed in the same function may be replaced by a factor.
    """
    jaxpr = getattr(closed, "jaxpr", closed)
    if len(jaxpr.eqns) != 1 or not {*map(id, jaxpr.eqns[0].invars)} <= {*map(id, jaxpr.invars)}:
        return False
    equation = jaxpr.eqns[0]
    return equation.primitive.name not in COMPILED or _only_combines_arguments(equation.params["jaxpr"])


def is_repeated(equation: Any) -> bool:
    """Return whether ``equation`` must be evaluated again in every run, and its result must not be cached.

    It must if it draws, calls Python, or calls a function that does either.
    """
    return equation.primitive.name in {*DRAWS, CALLS_BACK} or draws_inside(equation.params)
