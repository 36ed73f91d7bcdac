"""Intercept torch's random calls: unmodified PyTorch code becomes a program that can be enumerated.

    with answered_by(draws):
        model.generate(...)

``draws`` chooses the results of every random function of torch's Python interface. A function without a rule raises
``NeedsValue`` with the name of the call, so that no randomness is missed. Sites name the function and the file and line
that called it.

Functions that torch compiles, scripts or maps over rows run as their Python code, because machine code would draw
without interception. Whether the compiler preserves the meaning of the Python code is not examined. A traced function
(``torch.jit.trace``) is one path of the function, and runs unchanged. ``vmap`` is a loop over the rows; with
``randomness="same"`` each row begins at the generator state of the first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import torch
from torch._functorch import apis as _apis
from torch._functorch import vmap as functorch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from specverify.intercept.caller import caller, draws_constant
from specverify.intercept.cpython.patches import once, replaced
from specverify.intercept.distributions import Forced
from specverify.intercept.refusals import NeedsValue, is_declined
from specverify.intercept.run import RUNS
from specverify.intercept.symbolic.buffers import holds_lazy
from specverify.intercept.symbolic.deferred import single
from specverify.intercept.symbolic.large import Wide, at_large_now
from specverify.intercept.symbolic.numbers import SymbolicFloat, final_outcome, opened
from specverify.intercept.torch.elementwise import REWRITTEN, rounds_at_the_end
from specverify.intercept.torch.filled import RESHAPING, from_numpy, made, writes_itself, written
from specverify.intercept.torch.functions import ANSWERS, MAKES, TorchDraws, full_name_of, function_of, name_of
from specverify.intercept.torch.generators import draws as may_draw
from specverify.intercept.torch.generators import settings_seen
from specverify.intercept.torch.tensors import SymbolicTensor, elements_of, holds, in_all, is_stored, stored
from specverify.laws import rounding
from specverify.reference import Draws

# Transforms


apis: Any = _apis
_SCRIPTED: Any = torch.jit.ScriptFunction
_REAL_CALL = _SCRIPTED.__call__
_REAL_VMAP = apis.vmap_impl


@contextmanager
def as_written() -> Iterator[None]:
    """Context manager: compiled, scripted and mapped functions run as the Python functions they were made from."""
    compiled = torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()
    apis.vmap_impl, _SCRIPTED.__call__ = _rows, _original
    try:
        with compiled:
            yield
    finally:
        apis.vmap_impl, _SCRIPTED.__call__ = _REAL_VMAP, _REAL_CALL


def _original(scripted: Any, *args: Any, **kwargs: Any) -> Any:
    of_source = getattr(scripted, "__name__", "") == "ScriptFunction"
    function = getattr(scripted, "_torchdynamo_inline", None) if of_source else None
    return (_REAL_CALL.__get__(scripted) if function is None else function)(*args, **kwargs)


def refuse_if_none_allowed() -> None:
    """Raise torch's error for a draw in a function that is mapped with ``vmap(..., randomness="error")``.

    Called at every draw; does nothing if no such function is running.
    """
    if RUNS.mapped_without_draws:
        raise RuntimeError("vmap: called random operation while in randomness error mode")


def _rows(
    func: Callable[..., Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str,
    chunk_size: int | None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Replace torch's ``vmap``: call ``func`` in a loop over the rows and stack the results.

    The parameters are those of torch's function.
    """
    number, dims, flat, spec = functorch._process_batched_inputs(in_dims, args, func)  # noqa: SLF001 - as vmap has it
    begin, result = torch.get_rng_state(), []
    for row in range(number):
        if randomness == "same" and row:
            torch.set_rng_state(begin)
        mine = [each if dim is None else each.select(dim, row) for each, dim in zip(flat, dims, strict=True)]
        with _drawing(allowed=randomness != "error"):
            result.append(func(*_pytree.tree_unflatten(mine, spec), **kwargs))
    leaves = [_pytree.tree_flatten(each)[0] for each in result]
    shape = _pytree.tree_flatten(result[0])[1]
    outs = _pytree._broadcast_to_and_flatten(out_dims, shape)  # noqa: SLF001 - as vmap has it
    joined = [torch.stack(each, dim) for each, dim in zip(zip(*leaves, strict=True), outs or (), strict=True)]
    return _pytree.tree_unflatten(joined, shape)


@contextmanager
def _drawing(*, allowed: bool) -> Iterator[None]:
    if allowed:
        yield
        return
    RUNS.mapped_without_draws += 1
    try:
        yield
    finally:
        RUNS.mapped_without_draws -= 1


# Calls


_ATTRIBUTES = {getattr(torch.Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "requires_grad")}
"""Getters of tensor attributes that do not depend on the elements."""
_ORDINARY = {torch.tensor, torch.Tensor.__dlpack__, torch.Tensor.__format__}
"""Functions that read the elements of a tensor and fail on tensors without storage."""


def _of_one(convert: Callable[[Any], Any], func: Any) -> Callable[[Any], Any]:
    """Return a function that converts the only element of a tensor; for several, ``func`` raises torch's error."""
    return lambda tensor: convert(tensor.item()) if tensor.numel() == 1 else func(torch.zeros(tensor.shape))


_TAKES_OUT: dict[Any, Callable[..., Any]] = {
    torch.Tensor.item: SymbolicTensor.item,
    torch.Tensor.tolist: SymbolicTensor.tolist,
    torch.Tensor.numpy: SymbolicTensor.numpy,
    torch.Tensor.__int__: _of_one(int, torch.Tensor.__int__),
    torch.Tensor.__index__: _of_one(int, torch.Tensor.__index__),
    torch.Tensor.__bool__: _of_one(bool, torch.Tensor.__bool__),
}
_SEQUENCES = {list, tuple}
_COPIES = {torch.as_tensor: torch.tensor}
"""Function -> a function that does the same with a list, and can read symbolic tensors in it."""
_WRITES = {torch.Tensor.__setitem__, torch.Tensor.copy_}


class _AnsweringMode(TorchFunctionMode):
    """The torch function mode that intercepts random calls and calls with symbolic arguments; others run unchanged."""

    def __init__(self, run: TorchDraws) -> None:
        super().__init__()
        self.run = run

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _ATTRIBUTES:
            return func(*args)
        try:
            args, named, filled = tuple(args), dict(kwargs) if kwargs else {}, self.run.filled
            if func in _COPIES and len(args) == 1 and type(args[0]) in _SEQUENCES:
                func = _COPIES[func]
            if filled.anything:
                if func in RESHAPING and filled.reshaped(func, *args, *named.values()):
                    return args[0]
                args, named = filled.standing_for(args), filled.standing_for(named)
            if "out" not in named and _is_of_plain(func, args, named):
                return _noted(func(*args, **named))
            if not named and _runs_as_it_is(func, args):
                return _noted(func(*args))
            lazy = holds_lazy(args) or holds_lazy(tuple(named.values()))
            if lazy or "out" in named or not _runs_as_it_is(func):
                return self._apart(func, args, named, lazy=lazy)
            return _noted(func(*args, **named))
        except NeedsValue as refusal:
            raise refusal.during(full_name_of(func), caller()) from None

    def _apart(self, func: Any, args: tuple[Any, ...], named: dict[str, Any], *, lazy: bool) -> Any:
        """Return the result of the torch call ``func(*args, **named)``, which torch alone cannot execute.

        The call draws, writes to a tensor, converts a tensor to numbers, or has a symbolic argument (``lazy``).
        """
        answer = ANSWERS.get(function_of(func))
        if answer is not None and not _on_meta(args, named):
            return self._answered(answer, func, args, named)
        if lazy:
            result = made(func, args, named)
            if not is_declined(result):
                return result
            args, named = _of_tensors(args, func), _of_tensors(named, func)
        if func in _TAKES_OUT and isinstance(args[0], SymbolicTensor):
            return _TAKES_OUT[func](*args, **named)
        if func in _WRITES and at_large_now() and holds(Wide, *args) and not isinstance(args[-1], SymbolicFloat):
            return self.run.filled.put(args[0], args[1] if len(args) > 2 else ..., args[-1])
        result = written(self.run.filled, func, args, named)
        if not is_declined(result):
            return result
        if func in _ORDINARY or torch.is_inference_mode_enabled():
            args = _with_storage(func, args)
        func = REWRITTEN.get(func, func)
        return _noted(self._looked_after(func, args, named) if may_draw(func) else func(*args, **named))

    def _answered(self, answer: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        refuse_if_none_allowed()
        if draws_constant():
            return _noted(self.run.streams.drawn_by_torch(lambda: func(*args, **kwargs)))
        out = kwargs.pop("out", None)
        if out is None:
            return answer(self.run, *args, **kwargs)
        if func in MAKES:
            kwargs["dtype"] = out.dtype
        return self.run.filled.fill(out, answer(self.run, *args, **kwargs))

    def _looked_after(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run ``func``, an operation without a rule that may draw, such as dropout, and return its result.

        ``args`` and ``kwargs`` are its arguments. Raises ``NeedsValue`` if it is given a generator, or if it drew from
        one.
        """
        if any(isinstance(value, torch.Generator) for value in (*args, *kwargs.values())):
            raise NeedsValue(
                "unseen-draw", f"{name_of(func)} at {caller()} draws from a generator, and is not answered"
            )
        result = func(*args, **kwargs)
        self.run.streams.look(lambda: f"{name_of(func)} at {caller()}, which is not answered")
        return result


def _runs_as_it_is(func: Any, args: tuple[Any, ...] = ()) -> bool:
    return _is_ordinary(func) and not holds_lazy(args) and not torch.is_inference_mode_enabled()


@cache
def _is_ordinary(func: Any) -> bool:
    """Return whether ``func`` neither draws, writes nor converts to numbers, so that torch can execute it unchanged."""
    return not (func in _ORDINARY or func in REWRITTEN or _writes_or_takes_out(func) or _is_random(func))


def _is_of_plain(func: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Return whether ``func`` draws nothing and no argument is symbolic, so that torch can execute it unchanged.

    ``args`` and ``named`` are the arguments of the call.
    """
    return _draws_nothing(func) and _are_plain(args) and _are_plain(named.values())


@cache
def _draws_nothing(func: Any) -> bool:
    return func not in REWRITTEN and not _is_random(func)


def _writes_or_takes_out(func: Any) -> bool:
    return func in _TAKES_OUT or func in _WRITES or writes_itself(func)


def _is_random(func: Any) -> bool:
    return function_of(func) in ANSWERS or may_draw(func)


def _are_plain(values: Iterable[Any]) -> bool:
    """Return whether all ``values`` are numbers, ordinary tensors, options of torch, or tuples and lists of these."""
    return _PLAIN.issuperset(map(type, values)) or all(type(value) in _PLAIN or _is_plain(value) for value in values)


def _is_plain(value: Any) -> bool:
    """Return whether ``value`` is a tuple or list of plain values, or a NumPy array of numbers."""
    kind = type(value)
    return (kind in _CONTAINERS and _are_plain(value)) or (kind is np.ndarray and value.dtype != object)


_CONTAINERS = frozenset({list, tuple})
_OF_TORCH = {torch.Tensor, torch.nn.Parameter, torch.dtype, torch.device}
_PLAIN = frozenset({*_OF_TORCH, int, float, bool, str, slice, type(None), type(...)})


def _noted(result: Any) -> Any:
    """Return ``result`` unchanged; record the dtype of a float tensor, on which the rounding bound depends."""
    if isinstance(result, torch.Tensor) and result.dtype.is_floating_point:
        rounding.saw(result.dtype)
    return result


def _with_storage(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return ``args``, the arguments of ``func``, with symbolic tensors replaced by ordinary tensors where needed.

    All are replaced if ``func`` reads memory or assigns to an index. Otherwise only tensors that have already become
    ordinary tensors (see ``is_stored``) are replaced.
    """
    all_of_them = func in _ORDINARY or func is torch.Tensor.__setitem__
    result: tuple[Any, ...] = in_all(stored if all_of_them else _stored_if_it_is, args)
    return result


def _stored_if_it_is(tensor: Any) -> Any:
    return stored(tensor) if isinstance(tensor, SymbolicTensor) and is_stored(tensor) else tensor


def _on_meta(args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Return whether the arguments ``args`` and ``named`` of a call place its result on the meta device.

    Nothing is drawn on the meta device.
    """
    place = named.get("device")
    if place is not None:
        return torch.device(place).type == "meta"
    first = next((value for value in (*args, *named.values()) if isinstance(value, torch.Tensor)), None)
    return first is not None and first.is_meta


def _of_tensors(given: Any, func: Any) -> Any:
    """Return ``given``, the arguments of ``func``, with each symbolic float replaced by a tensor without dimensions.

    These tensors have the float dtype of the other tensors among the arguments, or torch's default dtype.
    """
    values = list(given.values()) if isinstance(given, dict) else given
    if SymbolicFloat not in map(type, values):
        return given
    floats = [value.dtype for value in values if isinstance(value, torch.Tensor) and value.dtype.is_floating_point]
    dtype = floats[0] if floats else torch.get_default_dtype()

    def tensor(value: Any) -> Any:
        if not isinstance(value, SymbolicFloat):
            return value
        if not rounding.is_of_16_bits(dtype) or rounds_at_the_end(name_of(func).strip("_")):
            return SymbolicTensor(single(opened(value)), dtype, "cpu")
        return SymbolicTensor(single(opened(value)), torch.float64, "cpu").to(dtype)

    return {name: tensor(value) for name, value in given.items()} if isinstance(given, dict) else in_all(tensor, given)


@contextmanager
def answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[TorchFunctionMode]:
    """Context manager: while it is open, ``draws`` chooses the results of torch's random calls.

    ``forced_uniform`` 0 or 1 gives every uniform the smallest or the largest value of its generator (other forms:
    ``boundary_of``). Yields the torch mode that another thread enters to be intercepted too.
    """
    run = TorchDraws(draws, forced_uniform)
    mode = _AnsweringMode(run)
    try:
        with run.streams.restored(), arrays_taken(), as_written(), mode:
            yield mode
        run.filled.settle()
    except NeedsValue as refusal:
        raise refusal.at(caller(refusal.__traceback__)) from None
    finally:
        run.filled.forget()


@once
@contextmanager
def arrays_taken() -> Iterator[None]:
    """Context manager: while it is open, ``torch.from_numpy`` accepts arrays with symbolic numbers."""
    with replaced(torch, {"from_numpy": from_numpy}):
        yield


@contextmanager
def torch_replaced() -> Iterator[None]:
    """Context manager that installs the patches that all uses of ``answered_by`` share.

    Outside a use of ``answered_by`` the patches have no effect.
    """
    with arrays_taken(), settings_seen():
        yield


def without_interception(tensors: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return a context manager in which torch runs without interception, for work of specverify that draws nothing.

    ``tensors`` are all tensors that the work reads, or None. If one may hold random numbers, or no interception is
    going on, the context manager does nothing.
    """
    overrides: Any = torch.overrides
    mode = overrides._get_current_function_mode()  # noqa: SLF001 - torch has no public name
    if not isinstance(mode, _AnsweringMode) or mode.run.filled.anything:
        return nullcontext()
    ordinary = all(tensor is None or type(tensor) is torch.Tensor for tensor in tensors)
    return torch._C.DisableTorchFunction() if ordinary else nullcontext()  # noqa: SLF001 - as above


def outcome_of(tokens: torch.Tensor) -> Any:
    """Return the elements of a 1-D tensor of tokens as the outcome of a run.

    If some tokens were never read, the outcome may be ``Undecided``: all possible texts with their probabilities (see
    ``final_outcome``).
    """
    return final_outcome(list(elements_of(tokens)))


__all__ = ["NeedsValue", "answered_by", "caller", "outcome_of", "without_interception"]
