"""Views, selections and copies of lazy tensors: the same elements in another shape.

The shape is worked out by torch on an index tensor. Importing this module teaches ``LazyTensor`` about them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

from specverify.intercept.deferred import Chosen, Continuous, Deferred, NeedsValue, known
from specverify.intercept.lazy_tensor import (
    HANDLERS,
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

aten: Any = torch.ops.aten


def _taking(function: Any, *, view: bool) -> Callable[..., Any]:
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


def _same(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    return LazyTensor(tensor.elements.copy(), tensor.dtype, kwargs.get("device") or tensor.device)


def _converted(tensor: Any, *_: Any, **kwargs: Any) -> Any:
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


def _joined(join: Callable[..., Any]) -> Callable[..., Any]:
    def handler(tensors: Any, dim: int = 0) -> Any:
        template = next(item for item in tensors if isinstance(item, LazyTensor))
        dtype = reduce(torch.promote_types, (item.dtype for item in tensors))
        return lazy_like(template, join([elements_of(item) for item in tensors if item.numel()], axis=dim), dtype)

    return handler


def _scalar(tensor: Any) -> Any:
    return known(tensor.elements.item())


HANDLERS.update(
    {
        **{
            getattr(aten, name): _taking(getattr(aten, name), view=True)
            for name in (
                "view",
                "_unsafe_view",
                "reshape",
                "unsqueeze",
                "squeeze",
                "select",
                "slice",
                "expand",
                "t",
                "transpose",
                "permute",
                "split",
                "unbind",
                "alias",
                "detach",
            )
        },
        **{
            getattr(aten, name): _taking(getattr(aten, name), view=False)
            for name in ("index", "index_select", "gather")
        },
        **{getattr(aten, name): _same for name in ("clone", "contiguous", "lift_fresh")},
        aten._to_copy: _converted,  # noqa: SLF001
        aten.cat: _joined(np.concatenate),
        aten.stack: _joined(np.stack),
        aten._local_scalar_dense: _scalar,  # noqa: SLF001
    }
)
