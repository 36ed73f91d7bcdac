"""Arithmetic of whole numbers of which some are outcomes of several draws: each is computed when it is looked at.

Token ids that are multiplied by a mask, or added to what stands beside them, are looked at no earlier than a token is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from specverify.intercept.refusals import Declined, is_declined
from specverify.intercept.torch.lazy_operations import each, template
from specverify.intercept.torch.lazy_tensor import LazyTensor, holds, lazy_like
from specverify.intercept.unknowns.deferred import Deferred, is_open, known
from specverify.intercept.unknowns.joined import UNKNOWN
from specverify.intercept.unknowns.primitive import Family
from specverify.intercept.unknowns.primitives import OF_TORCH, names_of, names_with
from specverify.intercept.unknowns.wide import at_large_now

NAMES = frozenset(names_of(OF_TORCH, Family.ARITHMETIC, Family.CLAMP).keys() & names_with(OF_TORCH, "outcome")) | {
    "rsub"
}
"""What is answered, by its name in ``torch.ops.aten``."""

MOST_ELEMENTS = 256
"""With more of them it costs more to compute each by itself than to look at all."""


def when_looked_at(name: str, function: Any, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``handler``, and where that has no answer ``function`` of each element, once somebody looks at it."""

    def answer(*operands: Any, **more: Any) -> Any:
        found = handler(*operands, **more)
        if not is_declined(found) or more or at_large_now() or not _few_and_whole(operands):
            return found  # at a real vocabulary a map of a draw is known whole, and the draw stays open behind it
        dtype = function(*(_ones(operand) for operand in operands)).dtype
        if dtype.is_floating_point:
            return Declined("there is no rule for whole numbers that become floats")
        computed = each(lambda *elements: _element(name, function, operands, elements, dtype), *operands)
        return lazy_like(template(*operands), computed, dtype)

    return answer


def _few_and_whole(operands: Sequence[Any]) -> bool:
    whole = all(
        not operand.dtype.is_floating_point and operand.numel() <= MOST_ELEMENTS
        if isinstance(operand, torch.Tensor)
        else isinstance(operand, int)
        for operand in operands
    )
    return whole and not holds(UNKNOWN, *operands) and any(isinstance(operand, LazyTensor) for operand in operands)


def _ones(operand: Any) -> Any:
    return torch.ones((1,) * operand.ndim, dtype=operand.dtype) if isinstance(operand, torch.Tensor) else 1


def _element(name: str, function: Any, operands: Sequence[Any], elements: Sequence[Any], dtype: torch.dtype) -> Any:
    """Return one element of the result: the outcome itself where the number beside it changes nothing."""
    if name in {"add", "mul"}:
        for place, one in enumerate(elements):
            beside = elements[1 - place]
            if not is_open(one) and known(one) == (name == "mul") and _dtype(operands[1 - place]) == dtype:
                return beside
            if not is_open(one) and not known(one) and name == "mul":
                return 0
    if not any(map(is_open, elements)):
        return _computed(function, operands, elements)
    compute = _product if name == "mul" else _computed
    return Deferred(partial(compute, function, operands, elements))


def _dtype(operand: Any) -> torch.dtype | None:
    return getattr(operand, "dtype", None)


def _computed(function: Any, operands: Sequence[Any], elements: Sequence[Any]) -> Any:
    return function(*map(_single, operands, map(known, elements))).item()


def _single(operand: Any, number: Any) -> Any:
    """Return a number as an operand of its kind: torch minds the dtype, and whether there are dimensions."""
    if not isinstance(operand, torch.Tensor):
        return number
    return torch.full((1,) * operand.ndim, number, dtype=operand.dtype)


def _product(function: Any, operands: Sequence[Any], elements: Sequence[Any]) -> Any:
    """Return a product; what is beside a zero is not looked at, a mask is looked at first."""
    first = 1 if _dtype(operands[1]) is torch.bool else 0
    return _computed(function, operands, elements) if known(elements[first]) else 0
