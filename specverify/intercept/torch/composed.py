"""Operations of torch that are made of others: what they are of random numbers, by their name in ``torch.ops.aten``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from specverify.intercept.refusals import Declined
from specverify.intercept.torch.lazy_operations import each
from specverify.intercept.torch.lazy_tensor import holds, lazy_like
from specverify.intercept.unknowns.deferred import known
from specverify.intercept.unknowns.joined import UNKNOWN

Handler = Callable[..., Any]


def _without_nan(tensor: Any, *given: Any, **named: Any) -> Any:
    """Return a row in which a random number is as it was, being neither NaN nor infinite; a number beside it may be."""

    def made(element: Any) -> Any:
        if isinstance(element, UNKNOWN):
            return element
        return torch.tensor(known(element), dtype=tensor.dtype).nan_to_num(*given, **named).item()

    return lazy_like(tensor, each(made, tensor))


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    return start + weight * (end - start)


def _threshold(tensor: Any, threshold: Any, value: Any) -> Any:
    return torch.where(tensor <= threshold, value, tensor)


def _softplus(tensor: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """Where the exponential is large nothing is left of the logarithm, but for what float32 rounds."""
    return torch.log1p(torch.exp(tensor * beta)) / beta


_MADE_OF: dict[str, Handler] = {
    "frac": lambda tensor: torch.fmod(tensor, 1.0),
    "nan_to_num": _without_nan,
    "lerp": _lerp,
    "addcmul": lambda tensor, left, right, value=1: tensor + value * left * right,
    "addcdiv": lambda tensor, left, right, value=1: tensor + value * left / right,
    "hardtanh": lambda tensor, low=-1, high=1: tensor.clamp(low, high),
    "relu6": lambda tensor: tensor.clamp(0, 6),
    "threshold": _threshold,
    "softplus": _softplus,
    "log_sigmoid": lambda tensor: -_softplus(-tensor),
    "log_sigmoid_forward": lambda tensor: (-_softplus(-tensor), torch.empty(0)),
    "special_xlogy": lambda factor, tensor: factor * torch.log(tensor),
    "xlogy": lambda factor, tensor: factor * torch.log(tensor),
    "dot": lambda left, right: (left * right).sum(),
    "mv": lambda matrix, row: (matrix * row).sum(-1),
    "mm": lambda left, right: (left[:, :, None] * right[None]).sum(1),
}


def composed(made_of: Handler) -> Handler:
    """Return the handler of an operation that is made of others."""

    def handler(*operands: Any, **more: Any) -> Any:
        return (
            made_of(*operands, **more)
            if holds(UNKNOWN, *operands, *more.values())
            else Declined("there is no rule for outcomes")
        )

    return handler


COMPOSED = {name: composed(made_of) for name, made_of in _MADE_OF.items() if hasattr(torch.ops.aten, name)}
"""The handler of each, where torch has it."""


def _padded_together(tensors: Any, batch_first: Any = False, value: float = 0.0, side: str = "right") -> Any:
    """Return tensors of any length, padded to that of the longest one and stacked."""
    longest = max(len(each) for each in tensors)

    def missing(tensor: Any) -> list[int]:
        number = longest - len(tensor)
        return [0, 0] * (tensor.dim() - 1) + ([0, number] if side == "right" else [number, 0])

    rows = [torch.nn.functional.pad(each, missing(each), value=value) for each in tensors]
    return torch.stack(rows, dim=0 if batch_first else 1)


REWRITTEN: dict[Any, Handler] = {torch._C._nn.pad_sequence: _padded_together}  # noqa: SLF001 - it has no public name
"""Functions that are whole in C++, and write there into a tensor of their own where nobody sees it."""
