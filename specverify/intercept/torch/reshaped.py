"""Shapes that are changed in place, ``t.transpose_(0, 1)`` or ``t.squeeze_()``: of the tensor, not of its views.

The tensor that foreign code holds is told its new shape: torch asks it which indices take everything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.utils._mode_utils import no_dispatch

from specverify.intercept.torch.lazy_tensor import View, is_stored, picked, stored
from specverify.intercept.torch.operations import HANDLERS
from specverify.intercept.unknowns.uniform import NeedsValue

aten = torch.ops.aten
_PLAIN = {
    aten.transpose_: aten.transpose,
    aten.t_: aten.t,
    aten.squeeze_: aten.squeeze,
    aten.unsqueeze_: aten.unsqueeze,
}
_OTHERS = (aten.as_strided_, aten.resize_, aten.resize_as_, aten.set_)


def _reshaping(in_place: Any, function: Any) -> Callable[..., Any]:
    """Return the handler of an operation that changes a shape in place; ``function`` returns a view of that shape."""

    def handler(tensor: Any, *args: Any) -> Any:
        for found in tensor.views:
            if (view := found()) is not None:
                stored(view)  # a view stays what it is
        places = function(torch.arange(tensor.numel()).reshape(tensor.shape), *args).numpy()
        if is_stored(tensor):
            tensor.settled = function(stored(tensor), *args)
        elif tensor.viewed is None:
            tensor.put_in_shape(picked(tensor, places))
        else:
            base, again, before = tensor.viewed
            tensor.viewed = View(base, partial(_after, again, function, args), before.ravel()[places])
            tensor.put_in_shape(picked(base, tensor.viewed.places))
        with no_dispatch():
            in_place(tensor, *args)
        return tensor

    return handler


def _after(again: Callable[..., torch.Tensor], function: Any, args: Any, base: torch.Tensor) -> Any:
    return function(again(base), *args)


def _refused(*_: Any) -> Any:
    raise NeedsValue("write-not-followed", "the shape of a tensor that holds random numbers is changed in place")


HANDLERS.update({in_place: _reshaping(in_place, function) for in_place, function in _PLAIN.items()})
HANDLERS.update(dict.fromkeys(_OTHERS, _refused))
