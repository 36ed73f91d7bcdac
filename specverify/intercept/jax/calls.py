"""Intercept JAX's random calls: unmodified JAX code, under ``jit`` or not, becomes a program that can be enumerated.

    with answered_by(draws):
        verify(p, q, draft_tokens, key)

JAX makes every random number from ``random_bits``. ``AnsweringTrace`` is a JAX trace: while it is current it receives
every primitive, from ``jax.numpy`` line by line, from ``vmap``, and from a function under ``jit`` as the equations of
its trace. ``draws`` chooses the results of random primitives. All bits of one key are one draw. A primitive that draws
in another way raises ``NeedsValue``.

JAX computes with concrete values, and the results are cached, because the runs of an enumeration repeat most
computations. JAX arrays are immutable, so an array with the same content may replace another. Keys are cached too:
every run takes the keys for its calls from one small set.

Rules compute with symbolic numbers. Loops and conditions are followed as in Python, so a random condition is drawn
where the program branches on it. If a primitive has no rule, every random element is drawn and JAX computes, so the
result is right for any primitive. A continuous symbolic number cannot be drawn in this way and is refused.

The numbers of a function under ``jit`` are computed after its Python code has run; a refusal names the line that was
traced. Functions of JAX itself are traced once for all callers, so for those the calling line is reported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np
from jax._src import core, dtypes, sharding_impls, source_info_util
from jax._src.interpreters import partial_eval
from jax._src.numpy import indexing

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import asarray, empty, once, replaced
from specverify.intercept.distributions import Forced
from specverify.intercept.jax.arrays import (
    LARGE,
    SymbolicTracer,
    collapsed,
    concrete,
    constant,
    elements_of,
    has_no_value,
    is_settled,
    key_data,
)
from specverify.intercept.jax.draws import MOST, JaxDraws
from specverify.intercept.jax.operations import (
    CHOICES,
    DIVISIONS,
    ELEMENTWISE,
    FUNCTIONS,
    ROWS,
    SEVERAL,
    computed_by_numpy,
    drawing_function,
    moved,
    numpy_rule,
    rounds,
)
from specverify.intercept.jax.same_functions import same_functions
from specverify.intercept.refusals import Declined, NeedsValue, is_declined
from specverify.intercept.run import PROCESS, RUNS
from specverify.intercept.symbolic.deferred import known, single
from specverify.intercept.symbolic.numbers import SymbolicFloat, SymbolicInt
from specverify.intercept.symbolic.uniform import refusal
from specverify.laws import rounding
from specverify.reference import Draws

# Traced functions


DRAWS = {"random_bits", "random_gamma", "rng_bit_generator", "rng_uniform", "prng_random_bits"}
"""Primitives that draw random numbers."""
CALLS_BACK = "pure_callback"
"""The primitive that calls Python, which may draw. It is executed every time; its results are not cached."""
_INSIDE = ("jaxpr", "call_jaxpr", "branches", "cond_jaxpr", "body_jaxpr", "fun_jaxpr")
_HALVES = {"bfloat16", "float16"}
_COMPILED = {"jit", "pjit"}
"""Primitives that call a traced function which JAX compiles; JAX executes them if all operands are concrete."""
Answer = TypeVar("Answer")


def draws_inside(parameters: dict[str, Any]) -> bool:
    """Return whether a primitive that calls traced functions, such as ``while``, draws random numbers inside them.

    The functions are among its ``parameters``.
    """
    return any(_draws(each) for name in _INSIDE if name in parameters for each in _functions(parameters[name]))


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


def _draws(closed: Any) -> bool:
    def answer(equations: Sequence[Any]) -> bool:
        return any(map(_is_repeated, equations))

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
        if equation.primitive.name in _COMPILED:
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
    return equation.primitive.name not in _COMPILED or _only_combines_arguments(equation.params["jaxpr"])


# Results on concrete numbers


_MOST_KNOWN = 50_000
"""Size of the cache; the cache is cleared when it is full."""


def computed_by_jax(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any = None) -> list[Any]:
    """Return the results of ``primitive`` on concrete ``operands``: from the cache, or computed by NumPy or JAX.

    ``parameters`` are those of the primitive. ``equation`` is the equation of a traced function that applies the
    primitive, or None.
    """
    key = _key(primitive, operands, parameters, equation)

    def compute() -> tuple[Any, list[Any], tuple[Any, ...]]:
        result = computed_by_numpy(primitive, operands, parameters)
        result = primitive.bind(*operands, **parameters) if result is None else result
        results = list(result) if primitive.multiple_results else [result]
        dtypes = {getattr(each, "dtype", None) for each in results} | halves_inside(parameters)
        return equation, results if key is None else [_standing_for(each) for each in results], tuple(dtypes)

    _, results, dtypes = _remembered(PROCESS.jax.computed, key, compute)
    for dtype in dtypes:
        rounding.saw(dtype)
    return list(results)


def _remembered(memory: dict[Any, Answer], key: Hashable | None, compute: Callable[[], Answer]) -> Answer:
    """Return the entry of the cache ``memory`` for ``key``; if there is none, store and return ``compute()``.

    If ``key`` is None, the result is not cached.
    """
    if key is None:
        return compute()
    before = memory.get(key)
    if before is None:
        before = compute()
        if len(memory) >= _MOST_KNOWN:
            _forget()
        memory[key] = before
    return before


def _forget() -> None:
    """Clear the caches whose keys contain identities (``id``) of arrays.

    A later array may get the identity of an earlier one, so such keys must not be used again (see ``_keyed``).
    """
    memories: tuple[dict[Any, Any], ...] = (
        PROCESS.jax.computed,
        PROCESS.jax.arrays,
        PROCESS.jax.ours,
        PROCESS.jax.indexed,
        PROCESS.jax.places,
        PROCESS.jax.known_parts,
        PROCESS.jax.by_content,
    )
    for memory in memories:
        memory.clear()
    PROCESS.jax.clearings += 1


def _keyed(what: Hashable, operands: Sequence[Hashable | None]) -> Hashable:
    """Return the key under which the caches store the result of a computation.

    ``what`` identifies the computation, and ``operands`` are the keys of its operands (see ``_operand_key``).
    """
    return PROCESS.jax.clearings, what, bool(jax.config.jax_enable_x64), *operands


def _key(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any) -> Hashable | None:
    """Return the cache key of a computation; None if the computation must not be cached.

    The key contains the content of ``operands`` and the identity of ``equation``. If ``equation`` is None, the key
    contains ``primitive`` and ``parameters`` instead.
    """
    if primitive.name == CALLS_BACK:
        return None
    try:
        told = [_operand_key(operand) for operand in operands]
        if None in told or (equation is not None and equation.effects):
            return None
        what: Hashable = id(equation) if equation is not None else (primitive, *parameters.items())
        key = _keyed(what, told)
        hash(key)
    except TypeError:
        return None
    return key


def _operand_key(operand: Any) -> Hashable | None:
    """Return a hashable value that identifies the content of an operand, as part of a cache key.

    None if the operand must not be cached, because it is large, or a key whose uses JAX counts.
    """
    if id(operand) in PROCESS.jax.ours:
        return id(operand)
    if not isinstance(operand, jax.Array):
        result = asarray(operand)
        return type(operand).__name__, str(result.dtype), result.shape, result.tobytes()
    result = _standing_for(operand)
    return id(result) if id(result) in PROCESS.jax.ours else None


def _standing_for(array: Any) -> Any:
    """Return the array that represents the content of ``array`` in cache keys: the first array seen with this content.

    An array that must not be cached is returned itself.
    """
    if id(array) in PROCESS.jax.ours or not isinstance(array, jax.Array):
        return array
    numbers, kind = key_data(array), array.dtype
    if numbers.size > LARGE or (numbers is not array and jax.config.jax_debug_key_reuse):
        return array
    content = (kind, numbers.weak_type, numbers.shape, numbers.sharding, asarray(numbers).tobytes())
    result = PROCESS.jax.arrays.setdefault(content, array)
    PROCESS.jax.ours[id(result)] = result
    return result


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
    return _operand_key(index) if isinstance(index, jax.Array) and not isinstance(index, core.Tracer) else None


def _indexed(array: Any, index: Any, **named: Any) -> Any:
    """Replace JAX's ``rewriting_take``, which returns ``array[index]`` and takes about a millisecond.

    NumPy takes the elements. For concrete arrays the result is cached.
    """
    if named or core.trace_ctx.trace is not TRACE:
        return _REWRITING_TAKE(array, index, **named)
    if isinstance(array, SymbolicTracer):
        elements = None if _index_key(index) is None else _elements_at(array.elements, index)
        if elements is not None:
            return collapsed([_lazy(elements, core.ShapedArray(elements.shape, array.dtype, array.aval.weak_type))])[0]
    if isinstance(array, core.Tracer):
        return _REWRITING_TAKE(array, index)
    return _taken(array, index, partial(_REWRITING_TAKE, array, index))


def _taken(array: Any, index: Any, by_jax: Callable[[], Any]) -> Any:
    """Return ``array[index]`` of concrete numbers, from the cache if it has been taken before.

    NumPy takes the elements. JAX takes them, by ``by_jax()``, where they have no key or the two libraries may differ.
    """
    told, place = _operand_key(array), _index_key(index)
    if told is None or place is None:
        return by_jax()

    def compute() -> Any:
        result = _taken_by_numpy(array, index)
        return _standing_for(by_jax() if result is None else result)

    result = _remembered(PROCESS.jax.indexed, _keyed("index", (told, place)), compute)
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


@once
@contextmanager
def indexing_cached() -> Iterator[None]:
    """Context manager: while it is open, the elements and parts of concrete arrays are cached."""
    with replaced(indexing, {"rewriting_take": _indexed}):
        yield


# Evaluation


_DERIVES = {"random_seed", "random_wrap", "random_split", "random_fold_in", "random_unwrap", "random_clone"}
_SAID_ASIDE = {"debug_callback", "debug_print"}
"""Primitives that print and return nothing."""
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
          "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
          "custom_lin": "jaxpr"}  # fmt: skip
"""Primitive that calls a traced function -> the parameter that holds the function."""

_HANDLERS = ELEMENTWISE | CHOICES | ROWS


class AnsweringTrace(core.Trace):  # type: ignore[misc]  # jax is looked at without its types
    """A JAX trace that gets every primitive: ``draws`` chooses the results of random ones, others are evaluated."""

    def process_primitive(self, primitive: Any, tracers: Sequence[Any], params: dict[str, Any], /) -> Any:
        """Return the result of ``primitive`` on the operands ``tracers``: an array, or a list of several.

        ``params`` are the parameters of the primitive.
        """
        calls = primitive.name in LOOPS or primitive.name in _CALLS
        parameters = same_functions(params, _operand_key) if calls else params
        result = computed(primitive, list(tracers), parameters)
        return result if primitive.multiple_results else result[0]

    def process_custom_jvp_call(self, _primitive: Any, fun: Any, _jvp: Any, tracers: Sequence[Any], /, **_: Any) -> Any:
        """Call ``fun`` itself on ``tracers``, so that its primitives reach this trace; derivatives are not needed."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_custom_vjp_call(
        self, _primitive: Any, fun: Any, _fwd: Any, _bwd: Any, tracers: Sequence[Any], /, **_: Any
    ) -> Any:
        """Call ``fun`` itself on ``tracers``, so that its primitives reach this trace; derivatives are not needed."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def process_call(self, _primitive: Any, fun: Any, tracers: Sequence[Any], _params: Any, /) -> Any:
        """Call ``fun`` itself on ``tracers``, so that its primitives reach this trace."""
        with core.set_current_trace(self):
            return fun.call_wrapped(*tracers)

    def stage_value(self, val: Any) -> Any:
        """Return ``val`` unchanged if it is an array; return a number as a JAX array."""
        if isinstance(val, (SymbolicTracer, jax.Array)):
            return val
        if isinstance(val, np.ndarray) and dtypes.canonicalize_dtype(val.dtype) == val.dtype:
            return constant(asarray(val), weak_type=getattr(val, "weak_type", False))
        return jax.numpy.asarray(val)


TRACE = AnsweringTrace()
"""The trace shared by all blocks, so that a function is traced once."""


def _as_array(value: SymbolicFloat) -> SymbolicTracer:
    """Return ``value``, a symbolic Python number, as an array, so that it can be used with JAX arrays.

    Raises ``NeedsValue`` while JAX traces a function: a number drawn then would be the same in every later call.
    """
    if isinstance(core.trace_ctx.trace, partial_eval.DynamicJaxprTrace):
        raise NeedsValue(
            "traced-by-jax",
            f"a random number of another library is used at {caller()} while JAX traces a function, and would be the "
            "same in every later call: draw it with a key, or pass it to the function as an argument",
        )
    return SymbolicTracer(TRACE, _aval_of(value), single(value.unknown))


def _aval_of(value: SymbolicFloat) -> Any:
    kind = np.int32 if isinstance(value, SymbolicInt) else np.float32
    return core.ShapedArray((), jax.dtypes.canonicalize_dtype(kind), weak_type=True)


for _kind in (SymbolicFloat, SymbolicInt):
    core.pytype_aval_mappings[_kind] = _aval_of
    dtypes.register_canonicalize_value_handler(_kind, _as_array)


def computed(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any = None) -> list[Any]:
    """Return the results of ``primitive`` on ``operands``, which may be symbolic.

    ``parameters`` are those of the primitive. ``equation`` is the equation of a traced function that applies the
    primitive, or None.
    """
    operands, name = collapsed(operands), primitive.name
    open_ones = any(isinstance(operand, SymbolicTracer) for operand in operands)
    if name in DRAWS:
        return [_drawn(primitive, operands, parameters)]
    if name == "iota" and math.prod(parameters["shape"]) > MOST and drawing_asks(equation):
        raise refusal(
            "too-many-numbers",
            f"an order of {math.prod(parameters['shape'])} numbers is drawn with JAX, more than are followed",
        )
    gives_away = any(parameters.get("donated_invars", ()))  # what is remembered is not to be overwritten
    followed_anyway = name not in _COMPILED or gives_away or open_ones
    if name in _CALLS and (followed_anyway or draws_inside(parameters) or is_exact(parameters[_CALLS[name]])):
        return _called(parameters[_CALLS[name]], operands)
    if open_ones or draws_inside(parameters):
        follow = LOOPS.get(name)
        if follow is not None:
            return follow(Follow(_called, _lazy), operands, parameters)
        if open_ones and name in _SAID_ASIDE:
            return []
    if not open_ones:
        if draws_inside(parameters):
            raise NeedsValue("unseen-draw", f"{name} at {caller()} draws random numbers, and is not followed")
        return computed_by_jax(primitive, operands, parameters, equation)
    try:
        return _lazily(primitive, operands, parameters, equation)
    except NeedsValue as refused:
        raise refused.during(f"{name} of JAX", caller()) from None


def _lazily(primitive: Any, operands: list[Any], parameters: dict[str, Any], equation: Any) -> list[Any]:
    """Apply the rule of ``primitive`` to symbolic operands; without a rule, draw their elements and let JAX compute.

    ``parameters`` are those of the primitive. ``equation`` is the equation of a traced function that applies the
    primitive, or None. Raises ``NeedsValue`` if there is no rule and an element is a continuous symbolic number, which
    cannot be drawn.
    """
    name = primitive.name
    if name in _DERIVES and has_no_value(*operands):
        raise NeedsValue(
            "key-of-random-number",
            f"a key is made of a random number that has no value, at {caller()}: split a key instead",
        )
    several, handler = SEVERAL.get(name), _HANDLERS.get(name)
    results = [each.aval for each in equation.outvars] if equation else _results(primitive, operands, parameters)
    if several is not None:
        result = several(operands, parameters, results)
    elif handler is not None:
        result = handler(operands, parameters, results[0])
        result = result if is_declined(result) else [result]
    else:
        result = moved(primitive, operands, parameters, results, partial(_places, primitive, parameters, equation))
    if not is_declined(result):
        return collapsed([_lazy(elements, aval) for elements, aval in zip(result, results, strict=True)])
    if has_no_value(*operands):
        refused = refusal("value-needed", "the value of a random number is needed, not only a comparison with it")
        raise refused.because(result)
    return computed_by_jax(primitive, [concrete(operand) for operand in operands], parameters, equation)


def _places(
    primitive: Any, parameters: dict[str, Any], equation: Any, operands: list[Any], compute: Callable[[], list[Any]]
) -> list[Any]:
    """Return ``compute()`` as NumPy arrays, from the cache if ``primitive`` has moved elements in the same way before.

    ``operands`` are the concrete operands of the primitive: numbers that stand for elements, and indices.
    ``parameters`` are those of the primitive. ``equation`` is the equation of a traced function that applies it, or
    None.
    """
    key = _key(primitive, operands, parameters, equation)
    return _remembered(PROCESS.jax.places, key, lambda: (equation, [asarray(each) for each in compute()]))[1]


def _lazy(elements: Any, aval: Any) -> SymbolicTracer:
    alike = tuple(aval.shape) == elements.shape
    return SymbolicTracer(
        TRACE, aval if alike else core.ShapedArray(elements.shape, aval.dtype, aval.weak_type), elements
    )


def _results(primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Return JAX's descriptions (shape and dtype) of the results of ``primitive`` on ``operands``.

    ``parameters`` are those of the primitive.
    """
    result, _ = primitive.abstract_eval(*map(core.typeof, operands), **parameters)
    return list(result) if primitive.multiple_results else [result]


def _drawn(primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> Any:
    """Return the random bits that ``primitive`` draws from ``operands[0]``, an array of keys.

    The bits are symbolic unless this run has fixed values for its random numbers. ``parameters`` are those of the
    primitive. Raises ``NeedsValue`` for primitives that draw in another way, and keys that depend on a symbolic number.
    """
    if primitive.name != "random_bits":
        raise NeedsValue("no-law", f"{primitive.name} of JAX at {caller()} draws from a law that cannot be enumerated")
    keys = operands[0]
    if isinstance(keys, SymbolicTracer):
        raise NeedsValue(
            "key-of-random-number",
            f"a key at {caller()} is made of a random number that has no value: split a key instead",
        )
    result = RUNS.jax[-1].bits(keys, drawing_function(), parameters["bit_width"], parameters["shape"])
    if not isinstance(result, np.ndarray):
        return result
    return _lazy(result, _results(primitive, operands, parameters)[0])


# Functions that JAX has traced


def _called(closed: Any, operands: Sequence[Any]) -> list[Any]:
    """Return the results of ``closed``, a traced function, on ``operands``.

    If it is a function of JAX itself, its draws are reported under its name.
    """
    jaxpr = getattr(closed, "jaxpr", closed)
    consts = getattr(closed, "consts", ())
    debug: Any = getattr(jaxpr, "debug_info", None)
    ours = debug is not None and of_jax(str(debug.func_src_info))
    if ours:
        RUNS.jax_functions.append(str(debug.func_name))
    try:
        result: Any = _as_one(jaxpr, operands) if ours else None
        return result if isinstance(result, list) else followed(jaxpr, consts, operands, lines=not ours)
    finally:
        if ours:
            RUNS.jax_functions.pop()


def _as_one(jaxpr: Any, operands: Sequence[Any]) -> Any:
    """Return the results of a function of JAX itself on ``operands`` by a rule for the whole function.

    ``jaxpr`` is its traced form. Returns ``Declined`` if there is no such rule, or if no operand is symbolic and
    nothing is drawn; the caller then evaluates the function step by step.
    """
    name = str(jaxpr.debug_info.func_name)
    rule = FUNCTIONS.get(name)
    if rule is None or not (_draws(jaxpr) or any(isinstance(operand, SymbolicTracer) for operand in operands)):
        return Declined(f"there is no rule for {name} as a whole")
    (aval,) = (variable.aval for variable in jaxpr.outvars)
    result = rule(dict(zip(jaxpr.debug_info.arg_names or (), operands, strict=False)), aval)
    return result if is_declined(result) else collapsed([_lazy(result, aval)])


def followed(jaxpr: Any, consts: Sequence[Any], operands: Sequence[Any], *, lines: bool = True) -> list[Any]:
    """Return the results of the traced function ``jaxpr`` on ``operands``: its equations are evaluated in order.

    ``consts`` are the constants of the function. ``lines`` states whether a draw is reported at the line from which its
    equation was traced.
    """
    known = _known_part(jaxpr, [*consts, *operands])
    values = dict(known.values)

    def value(variable: Any) -> Any:
        return variable.val if isinstance(variable, core.Literal) else values[variable]

    reached: list[Any] = []
    with lines_of(reached) if lines else nullcontext():
        for equation in known.rest:
            reached.append(equation)
            given = [value(variable) for variable in equation.invars]
            values.update(zip(equation.outvars, _of_equation(equation, given), strict=False))
    return [_array(value(variable), variable.aval) for variable in jaxpr.outvars]


class _KnownPart(NamedTuple):
    """The part of a traced function that depends only on arguments with known content."""

    jaxpr: Any
    """The function; the cache keeps it, so that its identity stays unique."""
    values: dict[Any, Any]
    """Variable of the function -> its value."""
    rest: tuple[Any, ...]
    """The other equations of the function, in order."""
    epsilon: float
    """The coarsest spacing of the floats that were computed."""


def _known_part(jaxpr: Any, operands: Sequence[Any]) -> _KnownPart:
    """Return the known part of the traced function ``jaxpr``, from the cache if it was evaluated before.

    ``operands`` are the constants and the arguments of the function. Symbolic operands and keys count as unknown, and
    so do draws, calls of Python and equations with effects.
    """
    variables = [*jaxpr.constvars, *jaxpr.invars]
    told = [None if _is_unknown(operand) else _operand_key(operand) for operand in operands]

    def compute() -> _KnownPart:
        return _evaluated(jaxpr, {each: value for each, value, of in zip(variables, operands, told, strict=True) if of})

    part: _KnownPart = _remembered(PROCESS.jax.known_parts, _keyed(id(jaxpr), told), compute)
    rounding.saw_spacing(part.epsilon)
    return part._replace(values={**part.values, **dict(zip(variables, operands, strict=True))})


def _is_unknown(operand: Any) -> bool:
    """Return whether ``operand`` is symbolic, a key, or an array of 32-bit words, which may be the data of keys."""
    return isinstance(operand, SymbolicTracer) or getattr(key_data(operand), "dtype", None) == np.uint32


def _evaluated(jaxpr: Any, values: dict[Any, Any]) -> _KnownPart:
    """Return the known part of ``jaxpr``; ``values`` are those of the known constants and arguments."""
    rest = []
    with rounding.collected() as seen:
        for equation in jaxpr.eqns:
            inputs = [each.val if isinstance(each, core.Literal) else values.get(each) for each in equation.invars]
            if equation.effects or any(each is None for each in inputs) or _is_repeated(equation):
                rest.append(equation)
            else:
                values.update(zip(equation.outvars, _of_equation(equation, inputs), strict=False))
    return _KnownPart(jaxpr, values, tuple(rest), seen.epsilon)


def _is_repeated(equation: Any) -> bool:
    """Return whether ``equation`` must be evaluated again in every run, and its result must not be cached.

    It must if it draws, calls Python, or calls a function that does either.
    """
    return equation.primitive.name in {*DRAWS, CALLS_BACK} or draws_inside(equation.params)


def _array(value: Any, aval: Any) -> Any:
    """Return the number ``value`` as an array with the dtype of ``aval``.

    An array is returned unchanged, and so is any value if ``aval`` describes no array.
    """
    plain = isinstance(value, (SymbolicTracer, jax.Array)) or not hasattr(aval, "shape")
    return value if plain else jax.numpy.asarray(value, aval.dtype)


def _of_equation(equation: Any, given: list[Any]) -> list[Any]:
    return computed(equation.primitive, given, equation.params, equation)


# Loops


class Follow(NamedTuple):
    """Two functions that the rules of loops and conditions get as an argument.

    ``called(function, operands)`` returns the results of a traced function on ``operands``. ``made(elements,
    description)`` returns the symbolic array of ``elements`` with the shape and dtype of JAX's ``description``.
    """

    called: Callable[[Any, Sequence[Any]], list[Any]]
    made: Callable[[Any, Any], SymbolicTracer]


def _conditional(follow: Follow, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    branches = parameters["branches"]
    which = min(max(int(_looked_at(operands[0])), 0), len(branches) - 1)
    return follow.called(branches[which], operands[1:])


def _looked_at(operand: Any) -> Any:
    return known(operand.elements.item()) if isinstance(operand, SymbolicTracer) else np.asarray(operand).item()


def _while(follow: Follow, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    first, second = parameters["cond_nconsts"], parameters["body_nconsts"]
    of_condition, of_body = operands[:first], operands[first : first + second]
    carried = operands[first + second :]
    while bool(_looked_at(follow.called(parameters["cond_jaxpr"], [*of_condition, *carried])[0])):
        carried = follow.called(parameters["body_jaxpr"], [*of_body, *carried])
    return carried


def _scan(follow: Follow, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    consts, carry, length = parameters["num_consts"], parameters["num_carry"], parameters["length"]
    fixed, carried, rows = operands[:consts], operands[consts : consts + carry], operands[consts + carry :]
    order = range(length)[::-1] if parameters["reverse"] else range(length)
    made: dict[int, list[Any]] = {}
    for step in order:
        result = follow.called(parameters["jaxpr"], [*fixed, *carried, *(_row(follow, each, step) for each in rows)])
        carried, made[step] = result[:carry], result[carry:]
    columns = [
        [made[step][place] for step in range(length)] for place in range(len(parameters["jaxpr"].out_avals) - carry)
    ]
    avals = parameters["jaxpr"].out_avals[carry:]
    return [*carried, *(_stacked(follow, column, aval) for column, aval in zip(columns, avals, strict=True))]


def _row(follow: Follow, operand: Any, step: int) -> Any:
    if isinstance(operand, SymbolicTracer):
        row = operand.elements[step]
        return collapsed([follow.made(row if operand.ndim > 1 else single(row), operand.aval)])[0]
    return _taken(operand, step, partial(jax.lax.index_in_dim, operand, step, keepdims=False))


def _stacked(follow: Follow, column: list[Any], aval: Any) -> Any:
    if not column:
        return jax.numpy.zeros((0, *aval.shape), aval.dtype)
    if all(map(is_settled, column)):
        return jax.numpy.stack([concrete(each) for each in column])
    result = empty((len(column), *aval.shape), dtype=object)
    for place, each in enumerate(column):
        result[place] = elements_of(each) if aval.shape else elements_of(each).item()
    return follow.made(result, aval)


LOOPS: dict[str, Callable[[Follow, list[Any], dict[str, Any]], list[Any]]] = {
    "cond": _conditional,
    "while": _while,
    "scan": _scan,
}


# Places


_JAX = str(Path(jax.__file__).parent)
_DRAWING = str(Path(jax.__file__).parent / "_src" / "random")


def of_jax(function: str) -> bool:
    """Return whether ``function``, the name of a traced function with its file, is in a file of JAX itself."""
    return f" at {_JAX}" in function


def drawing_asks(equation: Any) -> bool:
    """Return whether the current primitive is applied inside a function of ``jax.random``.

    ``equation`` is the equation of a traced function that applies the primitive, and its recorded call stack is
    examined. If it is None, the primitive is called directly, and the current call stack is examined.
    """
    if equation is not None:
        return any(frame.file_name.startswith(_DRAWING) for frame in equation.source_info.traceback.frames)
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while frame is not None and not frame.f_code.co_filename.startswith(_DRAWING):
        frame = frame.f_back
    return frame is not None


@contextmanager
def lines_of(reached: Sequence[Any]) -> Iterator[None]:
    """Context manager: while it is open, ``caller`` returns the line of the last equation in ``reached``, if known."""
    RUNS.lines.append(lambda: line_of(reached[-1]))
    try:
        yield
    finally:
        RUNS.lines.pop()


def line_of(equation: Any) -> str:
    """Return file and line of the foreign code from which an equation was traced; "" if unknown."""
    result = PROCESS.jax.lines.get(id(equation))
    if result is None:
        frame = source_info_util.user_frame(equation.source_info.traceback)
        line = "" if frame is None else f"{Path(frame.file_name).name}:{frame.start_line}"
        result = PROCESS.jax.lines[id(equation)] = (equation, line)  # it is kept, so that no other one gets its number
    return result[1]


# Calls


@contextmanager
def answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[Callable[[], Any]]:
    """Context manager: while it is open, ``draws`` chooses the results of JAX's random calls.

    Yields a function that returns the context manager for another thread, in which its calls are intercepted too.
    ``forced_uniform`` gives every uniform a fixed value instead: see ``boundary_of``.
    """
    RUNS.jax.append(JaxDraws(draws, forced_uniform))
    try:
        with meshes_set(), indexing_cached(), core.set_current_trace(TRACE):
            yield lambda: core.set_current_trace(TRACE)
    except NeedsValue as refusal:
        raise refusal.at(caller(refusal.__traceback__)) from None
    finally:
        RUNS.jax.pop()


def _is_outside_of_jit() -> bool:
    """Replace JAX's ``trace_state_clean``, which returns whether no function is being traced.

    During interception ``jax.set_mesh`` gets True, because it would fail otherwise. Other callers get JAX's own result.
    """
    asks = sys._getframe(1).f_globals.get("__name__")  # noqa: SLF001
    ours = core.trace_ctx.trace is TRACE and asks == sharding_impls.__name__
    return ours or bool(_TRACE_STATE_CLEAN())


_TRACE_STATE_CLEAN = core.trace_state_clean


@once
@contextmanager
def meshes_set() -> Iterator[None]:
    """Context manager: while it is open, ``jax.set_mesh`` works although JAX is intercepted."""
    with replaced(core, {"trace_state_clean": _is_outside_of_jit}):
        yield


def fresh_key() -> Any:
    """Return a new JAX key for the program's next call in the current run; None if JAX is not intercepted."""
    return RUNS.jax[-1].key() if RUNS.jax else None
