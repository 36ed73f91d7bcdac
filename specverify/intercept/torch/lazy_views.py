"""Views, selections and copies of lazy tensors: the same elements in another shape.

The shape is worked out by torch on an index tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

from specverify.intercept.torch.lazy_tensor import (
    LazyTensor,
    View,
    elements_of,
    holds,
    in_all,
    is_settled,
    lazy_like,
    look_at,
    picked,
    view_of,
)
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.deferred import Chosen, Deferred, known
from specverify.intercept.unknowns.uniform import NeedsValue


def taking(function: Any, *, view: bool) -> Callable[..., Any]:
    """Return the handler of an operation that takes elements: as a view of the tensor, or as a copy."""

    def handler(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, LazyTensor) or not all(is_settled(value, shares=False) for value in args):
            return NotImplemented
        if any(isinstance(value, torch.dtype) for value in args):  # the same bits, read as other numbers
            return NotImplemented
        args = tuple(in_all(look_at, value) for value in args)
        places = torch.arange(tensor.numel()).reshape(tensor.shape)
        found = function(places, *args, **kwargs)
        again = partial(_again, function, args, kwargs)
        if not isinstance(found, (list, tuple)):
            return _taken(tensor, found, again if view else None)
        return type(found)(_taken(tensor, part, partial(again, item=item)) for item, part in enumerate(found))

    return handler


def _again(function: Any, args: Any, kwargs: Any, base: torch.Tensor, item: int | None = None) -> Any:
    found = function(base, *args, **kwargs)
    return found if item is None else found[item]


def _taken(tensor: LazyTensor, places: torch.Tensor, again: Callable[..., torch.Tensor] | None) -> LazyTensor:
    where = places.numpy()
    if again is not None:
        return view_of(View(tensor, again, where))
    return lazy_like(tensor, picked(tensor, where))


def same(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    """Answer an operation that copies."""
    return LazyTensor(tensor.elements.copy(), tensor.dtype, kwargs.get("device") or tensor.device)


def converted(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    """Answer a conversion to another dtype or device."""
    dtype = kwargs.get("dtype") or tensor.dtype
    continuous = holds(Continuous, tensor)
    if continuous and not dtype.is_floating_point:
        raise NeedsValue("a uniform random number is converted to integers")
    whole = dtype not in (torch.bool, tensor.dtype) and not dtype.is_floating_point
    if continuous or dtype == tensor.dtype or (whole and not tensor.dtype.is_floating_point):
        return LazyTensor(tensor.elements.copy(), dtype, kwargs.get("device") or tensor.device)
    if dtype.is_floating_point or holds(Chosen, tensor):
        return NotImplemented
    cast: Any = int if whole else lambda number: int(number != 0)
    elements = np.empty(tensor.elements.size, dtype=object)
    elements[:] = [Deferred(partial(_cast, cast, element)) for element in tensor.elements.flat]
    return LazyTensor(elements.reshape(tensor.elements.shape), dtype, kwargs.get("device") or tensor.device)


def _cast(cast: Callable[[Any], int], element: Any) -> int:
    return cast(known(element))


def joined(join: Callable[..., Any]) -> Callable[..., Any]:
    """Return the handler of ``cat`` or ``stack``, as NumPy joins elements."""

    def handler(tensors: Any, dim: int = 0) -> Any:
        template = next(item for item in tensors if isinstance(item, LazyTensor))
        dtype = reduce(torch.promote_types, (item.dtype for item in tensors))
        return lazy_like(template, join([elements_of(item) for item in tensors if item.numel()], axis=dim), dtype)

    return handler


def scalar(tensor: Any) -> Any:
    """Answer what takes the number out of a tensor."""
    return known(tensor.elements.item())
