"""A tensor whose elements may be random values nobody has looked at yet.

It has a shape, a dtype and a device like any tensor, and an object array of elements. Views and comparisons stay lazy;
an operation that is not known here looks at every element first and then runs as usual, so the result is right
whatever the operation. Only a continuous element refuses to be looked at. Who writes to a view writes to its base, as
in torch: the base is looked at and becomes an ordinary tensor, and its views become views of that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, reduce
from typing import Any, Self

import numpy as np
import torch

from specverify.intercept import deferred
from specverify.intercept.deferred import Chosen, Continuous, Deferred, NeedsValue, known

aten: Any = torch.ops.aten


class LazyTensor(torch.Tensor):
    """``elements`` is an object array of numbers, ``Continuous`` and ``Deferred``, in the shape of the tensor."""

    elements: np.ndarray[Any, Any]
    viewed: tuple[LazyTensor, Callable[[torch.Tensor], torch.Tensor]] | None
    """The tensor it is a view of, and the view; what is written to one of them is written to both."""
    settled: torch.Tensor | None
    """The ordinary tensor it has become, once there was need of storage; from then on that is what is written to."""
    read: torch.Tensor | None
    """A copy of a view whose elements were all looked at, for those who only read."""

    def __new__(cls, elements: np.ndarray[Any, Any], dtype: torch.dtype, device: Any) -> Self:
        """Return the tensor; it has no storage."""
        wrapper: Any = torch.Tensor._make_wrapper_subclass  # noqa: SLF001
        made: Self = wrapper(cls, elements.shape, dtype=dtype, device=device)
        made.elements, made.viewed, made.settled, made.read = elements, None, None, None
        return made

    def __init__(self, elements: np.ndarray[Any, Any], dtype: torch.dtype, device: Any) -> None:
        """See ``__new__``."""

    def tolist(self) -> Any:
        """Look at every element."""
        return look_at(self).tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        """Look at every element."""
        return _stored(self).numpy(*args, **kwargs)

    def __repr__(self, **_: Any) -> Any:  # type: ignore[override]
        """Name the tensor without looking at it."""
        return f"LazyTensor(shape={tuple(self.shape)}, dtype={self.dtype})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch leaves ``args`` and ``kwargs`` out at times
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[Any, Any] | None = None
    ) -> Any:
        """Answer an operation lazily if it is known, else look at every element and run it."""
        kwargs = kwargs or {}
        shares = _shares_storage(func)
        handler = HANDLERS.get(func.overloadpacket)
        if handler is not None and not all(_is_settled(value, shares) for value in (*args, *kwargs.values())):
            answer = handler(*args, **kwargs)
            if answer is not NotImplemented:
                return answer
        ordinary = _stored if shares else look_at
        return func(*in_all(ordinary, args), **{name: in_all(ordinary, value) for name, value in kwargs.items()})


@cache
def _shares_storage(func: Any) -> bool:
    """Return whether an operation writes to an argument, or returns a view of one."""
    return any(item.alias_info is not None for item in (*func._schema.arguments, *func._schema.returns))  # noqa: SLF001


def look_at(tensor: Any) -> Any:
    """Return an ordinary tensor to read, every element looked at; raises ``NeedsValue`` for a continuous one."""
    if not isinstance(tensor, LazyTensor):
        return tensor
    if tensor.viewed is None or is_stored(tensor):
        return _stored(tensor)
    if tensor.read is None:
        tensor.read = _of_elements(tensor)
    return tensor.read


def _stored(tensor: Any) -> Any:
    """Return the ordinary tensor that a lazy one becomes for good: a view becomes a view, its base is looked at."""
    if not isinstance(tensor, LazyTensor):
        return tensor
    if tensor.settled is None:
        tensor.settled = tensor.viewed[1](_stored(tensor.viewed[0])) if tensor.viewed else _of_elements(tensor)
    return tensor.settled


def _of_elements(tensor: LazyTensor) -> torch.Tensor:
    return of_numbers(tensor, [known(element) for element in tensor.elements.flat])


def of_numbers(tensor: LazyTensor, numbers: list[Any]) -> torch.Tensor:
    """Return the ordinary tensor that a lazy one is when its elements are these numbers."""
    return torch.tensor(numbers, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)


def is_stored(tensor: LazyTensor) -> bool:
    """Return whether it, or what it is a view of, has become an ordinary tensor."""
    return tensor.settled is not None or (tensor.viewed is not None and is_stored(tensor.viewed[0]))


def _is_settled(value: Any, shares: bool) -> bool:
    """Return whether there is nothing left in an argument that has not been looked at.

    For an operation that ``shares`` storage, the base of a view must have been looked at as well.
    """
    if isinstance(value, (list, tuple)):
        return all(_is_settled(item, shares) for item in value)
    if not isinstance(value, LazyTensor) or is_stored(value):
        return True
    if shares and value.viewed is not None:
        return False
    return not any(deferred.is_open(element) for element in value.elements.flat)


def in_all(change: Callable[[Any], Any], value: Any) -> Any:
    """Apply ``change`` to a value, or to every item of a list or tuple."""
    if type(value) in (list, tuple):
        return type(value)(in_all(change, item) for item in value)
    return change(value)


def elements_of(value: Any) -> np.ndarray[Any, Any]:
    """Return the elements of a tensor or a number as an object array."""
    if isinstance(value, LazyTensor):
        return elements_of(_stored(value)) if is_stored(value) else value.elements
    if isinstance(value, torch.Tensor):
        found = np.empty(tuple(value.shape), dtype=object)
        found[...] = np.array(value.detach().cpu().tolist(), dtype=object).reshape(tuple(value.shape))
        return found
    single = np.empty((), dtype=object)
    single[()] = value
    return single


def holds(kind: type, *operands: Any) -> bool:
    """Return whether an element of some lazy operand is of this kind."""
    lazy = [operand for operand in operands if isinstance(operand, LazyTensor)]
    return any(isinstance(element, kind) for operand in lazy for element in operand.elements.flat)


def lazy_like(tensor: Any, elements: Any, dtype: torch.dtype | None = None) -> LazyTensor:
    """Return a lazy tensor of these elements, in the dtype given or that of ``tensor``, on its device."""
    return LazyTensor(np.asarray(elements, dtype=object), dtype or tensor.dtype, tensor.device)


# Views and selections: the same elements in another shape. The shape is worked out by torch on an index tensor.


def _taking(function: Any, *, view: bool) -> Callable[..., Any]:
    def handler(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, LazyTensor) or not all(_is_settled(value, shares=False) for value in args):
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


def _taken(tensor: LazyTensor, places: torch.Tensor, view: Callable[[torch.Tensor], torch.Tensor] | None) -> LazyTensor:
    shape = tuple(places.shape)
    taken = lazy_like(tensor, tensor.elements.ravel()[places.reshape(-1).numpy()].reshape(shape))
    taken.viewed = (tensor, view) if view else None
    return taken


def _alias(function: Any) -> Callable[..., Any]:
    def handler(tensor: Any) -> Any:
        same = LazyTensor(tensor.elements, tensor.dtype, tensor.device)
        same.viewed = (tensor, function)
        return same

    return handler


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


HANDLERS: dict[Any, Callable[..., Any]] = {
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
        )
    },
    **{getattr(aten, name): _taking(getattr(aten, name), view=False) for name in ("index", "index_select", "gather")},
    **{getattr(aten, name): _alias(getattr(aten, name)) for name in ("alias", "detach")},
    **{getattr(aten, name): _same for name in ("clone", "contiguous", "lift_fresh")},
    aten._to_copy: _converted,  # noqa: SLF001
    aten.cat: _joined(np.concatenate),
    aten.stack: _joined(np.stack),
    aten._local_scalar_dense: _scalar,  # noqa: SLF001
}
"""What is known of each aten operation; ``lazy_operations`` adds comparisons, reductions and arithmetic."""
