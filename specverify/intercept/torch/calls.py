"""torch's random calls, answered by ``draws``: unmodified PyTorch code becomes a program that can be enumerated.

    with answered_by(draws):
        model.generate(...)

Every random function of torch's Python interface is answered; one that is not known here raises ``NeedsValue`` naming
the call, so that no randomness passes unnoticed. Sites name the function and the file and line that called it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from specverify.intercept.boundary import Forced
from specverify.intercept.caller import caller
from specverify.intercept.native_types import once, replaced
from specverify.intercept.refusals import is_declined
from specverify.intercept.torch.composed import REWRITTEN
from specverify.intercept.torch.draws import TorchDraws
from specverify.intercept.torch.dtypes import rounds_at_the_end
from specverify.intercept.torch.functions import ANSWERS, MAKES, full_name_of, function_of, name_of
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, holds, in_all, is_stored, stored
from specverify.intercept.torch.operations import draws as may_draw
from specverify.intercept.torch.streams import settings_seen
from specverify.intercept.torch.transforms import as_written, refuse_if_none_allowed
from specverify.intercept.torch.written import RESHAPING, from_numpy, made, writes_itself, written
from specverify.intercept.unknowns.deferred import single
from specverify.intercept.unknowns.lazy_functions import holds_lazy
from specverify.intercept.unknowns.lazy_numbers import LazyFloat, opened
from specverify.intercept.unknowns.outcome import final_outcome
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.intercept.unknowns.wide import Wide, at_large_now
from specverify.laws import rounding
from specverify.reference import Draws

_ATTRIBUTES = {getattr(torch.Tensor, name).__get__ for name in ("shape", "dtype", "device", "ndim", "requires_grad")}
"""What a tensor tells without its numbers."""
_ORDINARY = {torch.tensor, torch.Tensor.__dlpack__, torch.Tensor.__format__}
"""What takes the numbers out of a tensor, and knows none that has no storage."""
_TAKES_OUT: dict[Any, Callable[..., Any]] = {
    torch.Tensor.item: LazyTensor.item,
    torch.Tensor.tolist: LazyTensor.tolist,
    torch.Tensor.numpy: LazyTensor.numpy,
    torch.Tensor.__int__: lambda tensor: int(tensor.item()),
    torch.Tensor.__index__: lambda tensor: int(tensor.item()),
    torch.Tensor.__bool__: lambda tensor: bool(tensor.item()),
}
_WRITES = {torch.Tensor.__setitem__, torch.Tensor.copy_}


class _Answers(TorchFunctionMode):
    """Answers random calls; everything else runs as it is."""

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
            if filled.anything:
                if func in RESHAPING and filled.reshaped(func, *args, *named.values()):
                    return args[0]
                args, named = filled.standing_for(args), filled.standing_for(named)
            if not named and (_runs_as_it_is(func, args) or _is_of_plain(func, args)):
                return _noted(func(*args))
            lazy = holds_lazy(args) or holds_lazy(tuple(named.values()))
            if lazy or "out" in named or not _runs_as_it_is(func):
                return self._apart(func, args, named, lazy=lazy)
            return _noted(func(*args, **named))
        except NeedsValue as refusal:
            raise refusal.during(full_name_of(func), caller()) from None

    def _apart(self, func: Any, args: tuple[Any, ...], named: dict[str, Any], *, lazy: bool) -> Any:
        """Return what a call gives that is answered, writes, takes numbers out, or has ``lazy`` arguments."""
        answer = ANSWERS.get(function_of(func))
        if answer is not None and not _on_meta(args, named):
            return self._answered(answer, func, args, named)
        if lazy:
            found = made(func, args, named)
            if not is_declined(found):
                return found
            args, named = _of_tensors(args, func), _of_tensors(named, func)
        if func in _TAKES_OUT and isinstance(args[0], LazyTensor):
            return _TAKES_OUT[func](*args, **named)
        if func in _WRITES and at_large_now() and holds(Wide, *args) and not isinstance(args[-1], LazyFloat):
            return self.run.filled.put(args[0], args[1] if len(args) > 2 else ..., args[-1])
        found = written(self.run.filled, func, args, named)
        if not is_declined(found):
            return found
        if func in _ORDINARY or torch.is_inference_mode_enabled():
            args = _with_storage(func, args)
        func = REWRITTEN.get(func, func)
        return _noted(self._looked_after(func, args, named) if may_draw(func) else func(*args, **named))

    def _answered(self, answer: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        refuse_if_none_allowed()
        out = kwargs.pop("out", None)
        if out is None:
            return answer(self.run, *args, **kwargs)
        if func in MAKES:
            kwargs["dtype"] = out.dtype
        return self.run.filled.fill(out, answer(self.run, *args, **kwargs))

    def _looked_after(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation that may draw, such as dropout, and refuse it if it did."""
        if any(isinstance(value, torch.Generator) for value in (*args, *kwargs.values())):
            raise NeedsValue(
                "unseen-draw", f"{name_of(func)} at {caller()} draws from a generator, and is not answered"
            )
        found = func(*args, **kwargs)
        self.run.streams.look(f"{name_of(func)} at {caller()}, which is not answered")
        return found


def _runs_as_it_is(func: Any, args: tuple[Any, ...] = ()) -> bool:
    return _is_ordinary(func) and not holds_lazy(args) and not torch.is_inference_mode_enabled()


@cache
def _is_ordinary(func: Any) -> bool:
    """Return whether a function neither draws nor writes, and takes nothing out: of tensors it runs as it is."""
    return not (func in _ORDINARY or func in REWRITTEN or _writes_or_takes_out(func) or _is_random(func))


def _is_of_plain(func: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a call writes, or takes numbers out, and is given nothing that may be random."""
    return _runs_on_plain(func) and _are_plain(args) and not torch.is_inference_mode_enabled()


@cache
def _runs_on_plain(func: Any) -> bool:
    return _writes_or_takes_out(func) and func not in _ORDINARY and not _is_random(func)


def _writes_or_takes_out(func: Any) -> bool:
    return func in _TAKES_OUT or func in _WRITES or writes_itself(func)


def _is_random(func: Any) -> bool:
    return function_of(func) in ANSWERS or may_draw(func)


def _are_plain(values: tuple[Any, ...]) -> bool:
    """Return whether there are numbers, ordinary tensors and places alone."""
    return all(type(value) in _PLAIN or (type(value) is tuple and _are_plain(value)) for value in values)


_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, int, float, bool, slice, type(None), type(...)})


def _noted(found: Any) -> Any:
    """Return what an operation gave, the dtype of a tensor of floats noted."""
    if isinstance(found, torch.Tensor) and found.dtype.is_floating_point:
        rounding.saw(found.dtype)
    return found


def _with_storage(func: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments as ordinary tensors: all of them where they must be, else those that have become some.

    Inference mode makes no view of a tensor without storage, and writing makes views of what is written.
    """
    all_of_them = func in _ORDINARY or func is torch.Tensor.__setitem__
    found: tuple[Any, ...] = in_all(stored if all_of_them else _stored_if_it_is, args)
    return found


def _stored_if_it_is(tensor: Any) -> Any:
    return stored(tensor) if isinstance(tensor, LazyTensor) and is_stored(tensor) else tensor


def _on_meta(args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Return whether a call makes or fills a tensor that has a shape and no numbers, where nothing is drawn."""
    place = named.get("device")
    if place is not None:
        return torch.device(place).type == "meta"
    first = next((value for value in (*args, *named.values()) if isinstance(value, torch.Tensor)), None)
    return first is not None and first.is_meta


def _of_tensors(given: Any, func: Any) -> Any:
    """Return arguments with tensors of one number for floats that have no value, in the dtype of the other tensors."""
    values = list(given.values()) if isinstance(given, dict) else given
    if LazyFloat not in map(type, values):
        return given
    floats = [value.dtype for value in values if isinstance(value, torch.Tensor) and value.dtype.is_floating_point]
    dtype = floats[0] if floats else torch.get_default_dtype()

    def tensor(value: Any) -> Any:
        if not isinstance(value, LazyFloat):
            return value
        if not rounding.is_of_16_bits(dtype) or rounds_at_the_end(name_of(func).strip("_")):
            return LazyTensor(single(opened(value)), dtype, "cpu")
        return LazyTensor(single(opened(value)), torch.float64, "cpu").to(dtype)

    return {name: tensor(value) for name, value in given.items()} if isinstance(given, dict) else in_all(tensor, given)


@contextmanager
def answered_by(draws: Draws, forced_uniform: Forced = None) -> Iterator[TorchFunctionMode]:
    """Answer torch's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it): the boundary
    draws at which a token of probability 0 gets out. Yields what another thread enters to be answered too.
    """
    run = TorchDraws(draws, forced_uniform)
    mode = _Answers(run)
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
    """Let ``from_numpy`` take arrays that hold random numbers."""
    with replaced(torch, {"from_numpy": from_numpy}):
        yield


@contextmanager
def torch_replaced() -> Iterator[None]:
    """Do once what every ``answered_by`` inside this block would do and what does nothing outside of those."""
    with arrays_taken(), settings_seen():
        yield


def outcome_of(tokens: torch.Tensor) -> Any:
    """Return the tokens of a 1-D tensor as the outcome of a run, those nobody looked at with their law."""
    return final_outcome(list(elements_of(tokens)))


__all__ = ["NeedsValue", "answered_by", "caller", "outcome_of"]
