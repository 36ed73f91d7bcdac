"""Functions of JAX that are answered as a whole if their arguments are known, and not primitive by primitive.

JAX composes many of its public functions from primitives in Python, and that takes up to milliseconds: ``jnp.repeat``,
``array.at[index].set``. A call whose arguments are all known has the same result in every run, so it is cached. Calls
with random numbers, keys whose uses are counted, large arrays or other objects reach the trace as usual, and so do
calls inside a function that JAX traces.

``array[index]`` is taken by NumPy if it can be, also of symbolic elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import jax
import numpy as np
from jax._src import config, core, source_info_util
from jax._src.numpy import indexing
from jax._src.ops import scatter

from specverify.intercept.cpython.patches import asarray, once, replaced
from specverify.intercept.jax.arrays import LARGE, SymbolicTracer, collapsed, constant, key_data
from specverify.intercept.jax.known_results import keyed, operand_key, remembered, standing_for
from specverify.intercept.jax.trace import AnsweringTrace
from specverify.intercept.run import PROCESS
from specverify.laws import rounding

source_info_util.register_exclusion(str(Path(__file__).parent))

# Functions

_READ_FILES = {"load", "fromfile"}
"""Functions of ``jax.numpy`` whose results depend on more than their arguments."""
_COMPARED = (str, bytes, type(None), type(...), bool, int, Enum, type, np.dtype)
"""Types of arguments that are equal only if they mean the same to JAX, once their types are equal."""


def _whole(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``function``, one of JAX, changed so that its results on known arguments are cached."""

    @wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        told = None if not _is_followed() else _argument_key((args, tuple(named.items())))
        if told is None:
            return function(*args, **named)
        key = keyed((function, config.trace_context()), (told,))
        before = PROCESS.jax.whole.get(key)
        if before is None:
            with rounding.collected() as seen:
                result = function(*args, **named)
            leaves = jax.tree_util.tree_leaves(result)
            if not leaves or not all(isinstance(leaf, jax.Array) for leaf in leaves):
                rounding.saw_spacing(seen.epsilon)
                return result
            standing = jax.tree_util.tree_map(standing_for, result)
            before = remembered(PROCESS.jax.whole, key, lambda: (standing, seen.epsilon))
        rounding.saw_spacing(before[1])
        result = before[0]
        return result if isinstance(result, jax.Array) else jax.tree_util.tree_map(lambda leaf: leaf, result)

    return called


def _is_followed() -> bool:
    """Return whether the code that runs now is intercepted, and not traced by JAX for later calls."""
    return isinstance(core.trace_ctx.trace, AnsweringTrace)


def _argument_key(value: Any) -> Hashable | None:
    """Return a hashable value that identifies the argument ``value`` of a call; None if the call must not be cached."""
    kind: type = type(value)
    result: Hashable | None = None
    if kind in {tuple, list}:
        told = tuple(map(_argument_key, value))
        result = None if None in told else (kind, told)
    elif isinstance(value, jax.Array):
        result = None if isinstance(value, core.Tracer) else operand_key(value)
    elif kind is slice:
        result = _argument_key(("slice", value.start, value.stop, value.step))
    elif kind is float:
        result = kind, value.hex()
    elif kind is np.ndarray or isinstance(value, np.generic):
        if value.dtype.kind in "biuf" and value.size <= LARGE:
            result = kind, value.dtype, value.shape, value.tobytes()
    elif isinstance(value, _COMPARED) or (kind is FunctionType and value.__module__.startswith("jax.")):
        result = kind, value
    return result


def _functions_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return name -> function with cached results, for all functions of the ``module`` of JAX that read no files."""
    kinds = FunctionType, type(jax.numpy.exp)
    functions = {name: each for name, each in vars(module).items() if isinstance(each, kinds)}
    return {name: _whole(each) for name, each in functions.items() if name not in _READ_FILES}


_MODULES = [(module, _functions_of(module)) for module in (jax.numpy, jax.nn, jax.scipy.special)]
_UPDATES = {"_scatter_update": _whole(scatter._scatter_update)}  # noqa: SLF001 - array.at[index].set and the like


@once
@contextmanager
def whole_calls_cached() -> Iterator[None]:
    """Context manager: while it is open, functions of JAX on known arguments are answered from a cache."""
    with ExitStack() as stack:
        for module, functions in _MODULES:
            stack.enter_context(replaced(module, functions))
        with replaced(scatter, _UPDATES), replaced(indexing, {"rewriting_take": _indexed}):
            yield


# Indexing


def _index_key(index: Any) -> Hashable | None:
    """Return a hashable value that identifies ``index``, the expression in ``array[index]``; None if it is symbolic.

    Numbers are kept with their types, because ``array[1]`` and ``array[True]`` differ.
    """
    if isinstance(index, tuple):
        told = tuple(map(_index_key, index))
        return None if None in told else told
    if isinstance(index, slice):
        ends = index.start, index.stop, index.step
        return (slice, *ends) if all(type(end) in {int, type(None)} for end in ends) else None
    if index is None or index is Ellipsis or type(index) in {int, bool}:
        return type(index), index
    return operand_key(index) if isinstance(index, jax.Array) and not isinstance(index, core.Tracer) else None


def _indexed(array: Any, index: Any, **named: Any) -> Any:
    """Replace JAX's ``rewriting_take``, which returns ``array[index]`` and takes about a millisecond.

    NumPy takes the elements. For concrete arrays the result is cached.
    """
    if named or not _is_followed():
        return _REWRITING_TAKE(array, index, **named)
    if isinstance(array, SymbolicTracer):
        elements = None if _index_key(index) is None else _elements_at(array.elements, index)
        if elements is not None:
            aval = core.ShapedArray(elements.shape, array.dtype, array.aval.weak_type)
            return collapsed([SymbolicTracer(core.trace_ctx.trace, aval, elements)])[0]
    if isinstance(array, core.Tracer):
        return _REWRITING_TAKE(array, index)
    return taken(array, index, partial(_REWRITING_TAKE, array, index))


def taken(array: Any, index: Any, by_jax: Callable[[], Any]) -> Any:
    """Return ``array[index]`` of concrete numbers, from the cache if it has been taken before.

    NumPy takes the elements. JAX takes them, by ``by_jax()``, where they have no key or the two libraries may differ.
    """
    told, place = operand_key(array), _index_key(index)
    if told is None or place is None:
        return by_jax()

    def compute() -> Any:
        result = _taken_by_numpy(array, index)
        return standing_for(by_jax() if result is None else result)

    result = remembered(PROCESS.jax.indexed, keyed("index", (told, place)), compute)
    rounding.saw(result.dtype)
    return result


def _taken_by_numpy(array: Any, index: Any) -> Any | None:
    """Return ``array[index]`` of concrete numbers; None if NumPy and JAX may differ, as they do outside the array.

    ``index`` has a key (see ``_index_key``).
    """
    if key_data(array) is not array or getattr(array, "committed", False):
        return None
    taken = _elements_at(asarray(array), index)
    return None if taken is None else constant(asarray(taken, dtype=array.dtype), weak_type=array.weak_type)


def _elements_at(elements: np.ndarray[Any, Any], index: Any) -> np.ndarray[Any, Any] | None:
    """Return ``elements[index]`` as an array; None if JAX may take other elements, as it does outside the array.

    ``index`` has a key (see ``_index_key``). The result is None for an index with a ``bool`` or an array of them.
    """
    parts = index if isinstance(index, tuple) else (index,)
    arrays = [part for part in parts if isinstance(part, jax.Array)]
    if any(isinstance(part, bool) for part in parts) or not all(map(_is_of_integers, arrays)):
        return None
    numbers = [asarray(part) if isinstance(part, jax.Array) else part for part in parts]
    try:
        return elements[(*numbers, *([] if any(part is ... for part in numbers) else [...]))]
    except IndexError:
        return None


def _is_of_integers(array: Any) -> bool:
    return not jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key) and np.dtype(array.dtype).kind in "iu"


_REWRITING_TAKE = indexing.rewriting_take
