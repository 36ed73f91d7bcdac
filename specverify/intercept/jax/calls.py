"""Intercept JAX's random calls: unmodified JAX code, under ``jit`` or not, becomes a program that can be enumerated.

    with answered_by(draws):
        verify(p, q, draft_tokens, key)

JAX makes every random number from ``random_bits``. ``TRACE`` is a JAX trace (``trace``): while it is current it
receives every primitive, from ``jax.numpy`` line by line, from ``vmap``, and from a function under ``jit`` as the
equations of its trace. ``draws`` chooses the results of random primitives. All bits of one key are one draw. A
primitive that draws in another way raises ``NeedsValue``. Results on concrete numbers are cached (``known_results``,
``whole_calls``).

Rules compute with symbolic numbers. Loops and conditions are followed as in Python, so a random condition is drawn
where the program branches on it. If a primitive has no rule, every random element is drawn and JAX computes, so the
result is right for any primitive. A continuous symbolic number cannot be drawn in this way and is refused.

The numbers of a function under ``jit`` are computed after its Python code has run; a refusal names the line that was
traced. Functions of JAX itself are traced once for all callers, so for those the calling line is reported.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax._src import core, dtypes, sharding_impls, source_info_util
from jax._src.interpreters import partial_eval

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import asarray, empty, once, replaced
from specverify.intercept.distributions import Forced
from specverify.intercept.jax.arrays import (
    SymbolicTracer,
    collapsed,
    concrete,
    elements_of,
    has_no_value,
    is_settled,
    key_data,
)
from specverify.intercept.jax.draws import MOST, JaxDraws
from specverify.intercept.jax.known_results import computed_by_jax, key_of, keyed, operand_key, remembered
from specverify.intercept.jax.operations import (
    CHOICES,
    ELEMENTWISE,
    FUNCTIONS,
    ROWS,
    SEVERAL,
    drawing_function,
    moved,
)
from specverify.intercept.jax.same_functions import same_functions
from specverify.intercept.jax.trace import AnsweringTrace
from specverify.intercept.jax.traced import COMPILED, DRAWS, draws_inside, function_draws, is_exact, is_repeated
from specverify.intercept.jax.whole_calls import taken, whole_calls_cached
from specverify.intercept.refusals import Declined, NeedsValue, is_declined
from specverify.intercept.run import PROCESS, RUNS
from specverify.intercept.symbolic.deferred import known, single
from specverify.intercept.symbolic.numbers import SymbolicFloat, SymbolicInt
from specverify.intercept.symbolic.uniform import refusal
from specverify.laws import rounding
from specverify.reference import Draws

# Evaluation


_DERIVES = {"random_seed", "random_wrap", "random_split", "random_fold_in", "random_unwrap", "random_clone"}
_SAID_ASIDE = {"debug_callback", "debug_print"}
"""Primitives that print and return nothing."""
_CALLS = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr", "remat": "jaxpr",
          "checkpoint": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
          "custom_lin": "jaxpr"}  # fmt: skip
"""Primitive that calls a traced function -> the parameter that holds the function."""

_HANDLERS = ELEMENTWISE | CHOICES | ROWS


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
    followed_anyway = name not in COMPILED or gives_away or open_ones
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


def _applied(primitive: Any, operands: list[Any], parameters: dict[str, Any]) -> list[Any]:
    """Return the results of ``primitive``, which the program applies itself, on ``operands``.

    ``parameters`` are those of the primitive. Traced functions with the same content are one function.
    """
    calls = primitive.name in LOOPS or primitive.name in _CALLS
    return computed(primitive, operands, same_functions(parameters, operand_key) if calls else parameters)


TRACE = AnsweringTrace(_applied)
"""The trace shared by all blocks, so that a function is traced once."""


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
    key = key_of(primitive, operands, parameters, equation)
    return remembered(PROCESS.jax.places, key, lambda: (equation, [asarray(each) for each in compute()]))[1]


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
    if rule is None or not (function_draws(jaxpr) or any(isinstance(operand, SymbolicTracer) for operand in operands)):
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
    told = [None if _is_unknown(operand) else operand_key(operand) for operand in operands]

    def compute() -> _KnownPart:
        return _evaluated(jaxpr, {each: value for each, value, of in zip(variables, operands, told, strict=True) if of})

    part: _KnownPart = remembered(PROCESS.jax.known_parts, keyed(id(jaxpr), told), compute)
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
            if equation.effects or any(each is None for each in inputs) or is_repeated(equation):
                rest.append(equation)
            else:
                values.update(zip(equation.outvars, _of_equation(equation, inputs), strict=False))
    return _KnownPart(jaxpr, values, tuple(rest), seen.epsilon)


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
    return taken(operand, step, partial(jax.lax.index_in_dim, operand, step, keepdims=False))


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
        with meshes_set(), whole_calls_cached(), core.set_current_trace(TRACE):
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
