"""torch's random calls, answered by ``draws``: unmodified PyTorch code becomes a program that can be enumerated.

    with answered_by(draws):
        model.generate(...)

Every random function of torch's Python interface is answered; one that is not known here raises ``NeedsValue`` naming
the call, so that no randomness passes unnoticed. Sites name the function and the file and line that called it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from reference import Draws
from specverify.intercept.boundary import Boundary
from specverify.intercept.caller import NOWHERE, caller
from specverify.intercept.torch.draws import TorchDraws
from specverify.intercept.torch.functions import ANSWERS, MAKES, name_of
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, holds, in_all, stored
from specverify.intercept.torch.operations import draws as may_draw
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.lazy_numbers import LazyFloat
from specverify.intercept.unknowns.outcome import final_outcome
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.laws import rounding

_ORDINARY = {torch.tensor, torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__dlpack__, torch.Tensor.__format__}
"""What takes the numbers out of a tensor, and knows none that has no storage."""
_TAKES_OUT = {torch.Tensor.item: LazyTensor.item, torch.Tensor.tolist: LazyTensor.tolist}
_CHANGED = ("add", "sub", "mul", "div", "pow", "neg", "abs", "reciprocal", "sqrt", "log", "log2", "log10", "log1p",
            "exp", "exp2", "expm1", "clamp", "clamp_min", "clamp_max")  # fmt: skip
_OPERATORS = {"__iadd__": "add", "__isub__": "sub", "__imul__": "mul", "__itruediv__": "div", "__ipow__": "pow"}
_IN_PLACE = (
    {getattr(torch.Tensor, f"{name}_"): getattr(torch.Tensor, name) for name in _CHANGED}
    | {getattr(torch.Tensor, name): getattr(torch.Tensor, known) for name, known in _OPERATORS.items()}
    | {torch.Tensor.copy_: lambda tensor, source, *_: source.expand(tensor.shape)}
)
"""What writes numbers that are computed into a tensor, and what computes them."""


class _Answers(TorchFunctionMode):
    """Answers random calls; everything else runs as it is."""

    def __init__(self, run: TorchDraws) -> None:
        super().__init__()
        self.run = run

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        standing_for = self.run.filled.standing_for
        args, named = standing_for(tuple(args)), standing_for(dict(kwargs)) if kwargs else {}
        if func in ANSWERS and not _on_meta(args, named):
            return self._answered(func, args, named)
        args, named = _of_tensors(args), _of_tensors(named)
        if func in _TAKES_OUT and isinstance(args[0], LazyTensor):
            return _TAKES_OUT[func](args[0])
        if func in _IN_PLACE and holds(Continuous, *args) and args[0].dtype.is_floating_point:
            return self.run.filled.fill(args[0], _IN_PLACE[func](*args, **named))
        if func in _ORDINARY:
            args = in_all(stored, args)
        found = self._looked_after(func, args, named) if may_draw(func) else func(*args, **named)
        if isinstance(found, torch.Tensor) and found.dtype.is_floating_point:
            rounding.saw(found.dtype)
        return found

    def _answered(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        if out is None:
            return ANSWERS[func](self.run, *args, **kwargs)
        if func in MAKES:
            kwargs["dtype"] = out.dtype
        return self.run.filled.fill(out, ANSWERS[func](self.run, *args, **kwargs))

    def _looked_after(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run an operation that may draw, such as dropout, and refuse it if it did."""
        if any(isinstance(value, torch.Generator) for value in (*args, *kwargs.values())):
            raise NeedsValue(f"{name_of(func)} at {caller()} draws from a generator, and is not answered")
        found = func(*args, **kwargs)
        self.run.streams.look(f"{name_of(func)} at {caller()}, which is not answered")
        return found


def _on_meta(args: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    """Return whether a call makes or fills a tensor that has a shape and no numbers, where nothing is drawn."""
    place = named.get("device")
    if place is not None:
        return torch.device(place).type == "meta"
    first = next((value for value in (*args, *named.values()) if isinstance(value, torch.Tensor)), None)
    return first is not None and first.is_meta


def _of_tensors(given: Any) -> Any:
    """Return arguments with tensors of one number for floats that have no value, in the dtype of the other tensors."""
    values = list(given.values()) if isinstance(given, dict) else given
    if LazyFloat not in map(type, values):
        return given
    floats = [value.dtype for value in values if isinstance(value, torch.Tensor) and value.dtype.is_floating_point]
    dtype = floats[0] if floats else torch.get_default_dtype()

    def tensor(value: Any) -> Any:
        elements = np.array(None, dtype=object)
        elements[()] = getattr(value, "continuous", None)
        return LazyTensor(elements, dtype, "cpu") if isinstance(value, LazyFloat) else value

    return {name: tensor(value) for name, value in given.items()} if isinstance(given, dict) else in_all(tensor, given)


@contextmanager
def answered_by(draws: Draws, forced_uniform: float | Boundary | None = None) -> Iterator[TorchFunctionMode]:
    """Answer torch's random calls by ``draws`` inside the block.

    ``forced_uniform`` gives every uniform that value instead (0, or 1 for the largest float below it): the boundary
    draws at which a token of probability 0 gets out. Yields what another thread enters to be answered too.
    """
    run = TorchDraws(draws, forced_uniform)
    mode = _Answers(run)
    try:
        with run.streams.restored(), mode:
            yield mode
    except NeedsValue as refusal:
        place = caller(refusal.__traceback__)
        known = place in str(refusal) or place == NOWHERE
        raise NeedsValue(str(refusal) if known else f"{refusal} ({place})") from None


def outcome_of(tokens: torch.Tensor) -> Any:
    """Return the tokens of a 1-D tensor as the outcome of a run, those nobody looked at with their law."""
    return final_outcome(list(elements_of(tokens)))


__all__ = ["NeedsValue", "answered_by", "caller", "outcome_of"]
