"""A tensor whose elements may be random values nobody has looked at yet.

It has a shape, a dtype and a device like any tensor, and an object array of elements. Views and comparisons stay lazy;
an operation that is not known here looks at every element first and then runs as usual, so the result is right
whatever the operation. Only a continuous element refuses to be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch

from specverify.intercept import deferred
from specverify.intercept.deferred import Continuous, NeedsValue, known

aten: Any = torch.ops.aten


class LazyTensor(torch.Tensor):
    """``elements`` is an object array of numbers, ``Continuous`` and ``Deferred``, in the shape of the tensor."""

    elements: np.ndarray[Any, Any]
    settled: torch.Tensor | None
    """The ordinary tensor it has become once every element was looked at; from then on that is what is written to."""

    def __new__(cls, elements: np.ndarray[Any, Any], dtype: torch.dtype, device: Any) -> Self:
        """Return the tensor; it has no storage."""
        wrapper: Any = torch.Tensor._make_wrapper_subclass  # noqa: SLF001
        made: Self = wrapper(cls, elements.shape, dtype=dtype, device=device)
        made.elements, made.settled = elements, None
        return made

    def __init__(self, elements: np.ndarray[Any, Any], dtype: torch.dtype, device: Any) -> None:
        """See ``__new__``."""

    def tolist(self) -> Any:
        """Look at every element."""
        return look_at(self).tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Look at every element."""
        return look_at(self).numpy(*args, **kwargs)

    def __repr__(self, **_: Any) -> Any:  # type: ignore[override]
        """Name the tensor without looking at it."""
        return f"LazyTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch leaves ``args`` and ``kwargs`` out at times
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[Any, Any] | None = None
    ) -> Any:
        """Answer an operation lazily if it is known, else look at every element and run it."""
        kwargs = dict(kwargs or {})
        handler = HANDLERS.get(func.overloadpacket)
        if handler is not None and not all(_is_settled(value) for value in (*args, *kwargs.values())):
            answer = handler(*args, **kwargs)
            if answer is not NotImplemented:
                return answer
        return func(*_looked_at(args), **{name: _looked_at(value) for name, value in kwargs.items()})


def look_at(tensor: Any) -> Any:
    """Return an ordinary tensor with every element looked at; raises ``NeedsValue`` for a continuous one."""
    if not isinstance(tensor, LazyTensor):
        return tensor
    if tensor.settled is None:
        values = [known(element) for element in tensor.elements.ravel()]
        tensor.settled = torch.tensor(values, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)
    return tensor.settled


def _is_settled(value: Any) -> bool:
    """Return whether there is nothing left in an argument that has not been looked at."""
    if isinstance(value, (list, tuple)):
        return all(_is_settled(item) for item in value)
    if not isinstance(value, LazyTensor) or value.settled is not None:
        return True
    return not any(deferred.is_open(element) for element in value.elements.flat)


def _looked_at(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_looked_at(item) for item in value)
    return look_at(value)


def elements_of(value: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor or a number as an object array."""
    if isinstance(value, LazyTensor):
        return value.elements if value.settled is None else elements_of(value.settled)
    if isinstance(value, torch.Tensor):
        found = np.empty(tuple(value.shape), dtype=object)
        found[...] = np.array(value.detach().cpu().tolist(), dtype=object).reshape(tuple(value.shape))
        return found
    single = np.empty((), dtype=object)
    single[()] = value
    return single


def lazy_like(tensor: Any, elements: Any, dtype: torch.dtype | None = None) -> LazyTensor:
    """Return a lazy tensor of these elements, in the dtype given or that of ``tensor``, on its device."""
    return LazyTensor(np.asarray(elements, dtype=object), dtype or tensor.dtype, tensor.device)


# Views: the same elements in another shape. The shape is worked out by torch on an index tensor.


def _view(function: Any) -> Callable[..., Any]:
    def handler(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, LazyTensor):
            return NotImplemented
        places = torch.arange(tensor.numel()).reshape(tensor.shape)
        found = function(places, *_looked_at(args), **kwargs)
        if isinstance(found, (list, tuple)):
            return type(found)(_taken(tensor, part) for part in found)
        return _taken(tensor, found)

    return handler


def _taken(tensor: LazyTensor, places: torch.Tensor) -> LazyTensor:
    flat = tensor.elements.ravel()
    taken = np.empty(tuple(places.shape), dtype=object)
    for index in np.ndindex(taken.shape):
        taken[index] = flat[int(places[index])]
    return lazy_like(tensor, taken)


def _same(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    return LazyTensor(tensor.elements, tensor.dtype, kwargs.get("device") or tensor.device)


def _converted(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    dtype = kwargs.get("dtype") or tensor.dtype
    continuous = any(isinstance(element, Continuous) for element in tensor.elements.ravel())
    if continuous and not dtype.is_floating_point:
        raise NeedsValue("a uniform random number is converted to integers")
    if continuous or dtype == tensor.dtype or not dtype.is_floating_point:
        return LazyTensor(tensor.elements, dtype, kwargs.get("device") or tensor.device)
    return NotImplemented


def _joined(join: Callable[..., Any]) -> Callable[..., Any]:
    def handler(tensors: Any, dim: int = 0) -> Any:
        template = next(item for item in tensors if isinstance(item, LazyTensor))
        dtype = next((item.dtype for item in tensors if item.dtype.is_floating_point), template.dtype)
        return lazy_like(template, join([elements_of(item) for item in tensors if item.numel()], axis=dim), dtype)

    return handler


def _scalar(tensor: Any) -> Any:
    return known(tensor.elements.item())


HANDLERS: dict[Any, Callable[..., Any]] = {
    **{
        getattr(aten, name): _view(getattr(aten, name))
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
            "index",
            "index_select",
            "split",
            "unbind",
            "gather",
        )
    },
    **{getattr(aten, name): _same for name in ("alias", "detach", "clone", "contiguous", "lift_fresh")},
    aten._to_copy: _converted,  # noqa: SLF001
    aten.cat: _joined(np.concatenate),
    aten.stack: _joined(np.stack),
    aten._local_scalar_dense: _scalar,  # noqa: SLF001
}
"""What is known of each aten operation; ``lazy_operations`` adds comparisons, reductions and arithmetic."""
