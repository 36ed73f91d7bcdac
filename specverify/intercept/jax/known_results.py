"""Caches of what JAX computes with concrete numbers, because the runs of an enumeration repeat most computations.

JAX arrays are immutable, so an array with the same content may replace another. Keys are cached too: every run takes
the keys for its calls from one small set.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import jax

from specverify.intercept.cpython.patches import asarray
from specverify.intercept.jax.arrays import LARGE, copied, key_data
from specverify.intercept.jax.operations import computed_by_numpy
from specverify.intercept.jax.traced import CALLS_BACK, halves_inside
from specverify.intercept.run import PROCESS
from specverify.laws import rounding

Answer = TypeVar("Answer")
_MOST_KNOWN = 50_000
"""Size of the cache; the cache is cleared when it is full."""


def computed_by_jax(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any = None) -> list[Any]:
    """Return the results of ``primitive`` on concrete ``operands``: from the cache, or computed by NumPy or JAX.

    ``parameters`` are those of the primitive. ``equation`` is the equation of a traced function that applies the
    primitive, or None.
    """
    key = key_of(primitive, operands, parameters, equation)

    def compute() -> tuple[Any, list[Any], tuple[Any, ...]]:
        result = computed_by_numpy(primitive, operands, parameters)
        result = primitive.bind(*operands, **parameters) if result is None else result
        results = list(result) if primitive.multiple_results else [result]
        dtypes = {getattr(each, "dtype", None) for each in results} | halves_inside(parameters)
        return equation, results if key is None else [standing_for(each) for each in results], tuple(dtypes)

    _, results, dtypes = remembered(PROCESS.jax.computed, key, compute)
    for dtype in dtypes:
        rounding.saw(dtype)
    return list(results)


def remembered(memory: dict[Any, Answer], key: Hashable | None, compute: Callable[[], Answer]) -> Answer:
    """Return the entry of the cache ``memory`` for ``key``; if there is none, store and return ``compute()``.

    If ``key`` is None, the result is not cached.
    """
    if key is None:
        return compute()
    before = memory.get(key)
    if before is None:
        before = compute()
        if len(memory) >= _MOST_KNOWN:
            forget()
        memory[key] = before
    return before


def forget() -> None:
    """Clear the caches whose keys contain identities (``id``) of arrays.

    A later array may get the identity of an earlier one, so such keys must not be used again (see ``keyed``).
    """
    memories: tuple[dict[Any, Any], ...] = (
        PROCESS.jax.computed,
        PROCESS.jax.arrays,
        PROCESS.jax.ours,
        PROCESS.jax.indexed,
        PROCESS.jax.whole,
        PROCESS.jax.places,
        PROCESS.jax.known_parts,
        PROCESS.jax.by_content,
    )
    for memory in memories:
        memory.clear()
    PROCESS.jax.clearings += 1


def keyed(what: Hashable, operands: Sequence[Hashable | None]) -> Hashable:
    """Return the key under which the caches store the result of a computation.

    ``what`` identifies the computation, and ``operands`` are the keys of its operands (see ``operand_key``).
    """
    return PROCESS.jax.clearings, what, bool(jax.config.jax_enable_x64), *operands


def key_of(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any) -> Hashable | None:
    """Return the cache key of a computation; None if the computation must not be cached.

    The key contains the content of ``operands`` and the identity of ``equation``. If ``equation`` is None, the key
    contains ``primitive`` and ``parameters`` instead.
    """
    if primitive.name == CALLS_BACK:
        return None
    try:
        told = [operand_key(operand) for operand in operands]
        if None in told or (equation is not None and equation.effects):
            return None
        what: Hashable = id(equation) if equation is not None else (primitive, *parameters.items())
        key = keyed(what, told)
        hash(key)
    except TypeError:
        return None
    return key


def operand_key(operand: Any) -> Hashable | None:
    """Return a hashable value that identifies the content of an operand, as part of a cache key.

    None if the operand must not be cached, because it is large, or a key whose uses JAX counts.
    """
    if id(operand) in PROCESS.jax.ours:
        return id(operand)
    if not isinstance(operand, jax.Array):
        result = asarray(operand)
        return type(operand).__name__, str(result.dtype), result.shape, result.tobytes()
    result = standing_for(operand)
    return id(result) if id(result) in PROCESS.jax.ours else None


def standing_for(array: Any) -> Any:
    """Return the array that represents the content of ``array`` in cache keys: a copy of the first with this content.

    An array that must not be cached is returned itself.
    """
    if id(array) in PROCESS.jax.ours or not isinstance(array, jax.Array):
        return array
    numbers, kind = key_data(array), array.dtype
    if numbers.size > LARGE or (numbers is not array and jax.config.jax_debug_key_reuse):
        return array
    content = (kind, numbers.weak_type, numbers.shape, numbers.sharding, asarray(numbers).tobytes())
    result = PROCESS.jax.arrays.get(content)
    if result is None:
        result = PROCESS.jax.arrays[content] = copied(array) if numbers is array else array
    PROCESS.jax.ours[id(result)] = result
    return result
