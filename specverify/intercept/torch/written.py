"""What writes random numbers into tensors: in place, into ``out``, at an index; and what makes tensors of them.

Each is computed by the function that writes nothing, and the numbers stand in the tensor from then on (``filled``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from numbers import Number
from typing import Any

import numpy as np
import torch

from specverify.intercept.refusals import Declined
from specverify.intercept.torch.filled import Filled, spread
from specverify.intercept.torch.lazy_handlers import MOVES
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, holds, in_all, is_stored, look_at
from specverify.intercept.torch.lazy_views import places_at
from specverify.intercept.torch.whole_numbers import NAMES as OF_WHOLE_NUMBERS
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.deferred import Deferred, is_open, single
from specverify.intercept.unknowns.given import is_whole
from specverify.intercept.unknowns.joined import UNKNOWN
from specverify.intercept.unknowns.lazy_arrays import LazyArray
from specverify.intercept.unknowns.lazy_buffers import contents_of
from specverify.intercept.unknowns.lazy_functions import holds_lazy
from specverify.intercept.unknowns.lazy_numbers import LazyFloat, LazyInt, opened
from specverify.intercept.unknowns.primitive import Family
from specverify.intercept.unknowns.primitives import OF_PYTHON

_WRITES_NOTHING = Declined("the call writes no random numbers")
_MAKES_NOTHING = Declined("the call makes no tensor of random numbers")
_OPERATORS = {
    f"__i{operator}__": row.torch[0]
    for operator, row in OF_PYTHON.items()
    if row.family is Family.ARITHMETIC and hasattr(torch.Tensor, f"__i{operator}__")
}
_MOVES = {"copy_", *(f"{name}_" for name in MOVES)}
"""What puts elements into a tensor as they are."""


_RESHAPING = ("t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "as_strided_", "resize_",
              "resize_as_", "set_")  # fmt: skip
RESHAPING = frozenset(getattr(torch.Tensor, name) for name in _RESHAPING)
"""What changes a shape in place, and writes no elements: see ``reshaped``."""


@cache
def _without_writing(func: Any) -> Callable[..., Any] | None:
    """Return what computes the numbers that a method of tensors writes into its own; None for another function."""
    name = _name(func)
    if getattr(torch.Tensor, name, None) is not func or func in RESHAPING:
        return None
    if name == "copy_":
        return lambda tensor, source, *_: source.to(tensor.dtype).expand(tensor.shape)
    if name in {"fill_", "zero_"}:
        return lambda tensor, value=0: torch.full(tuple(tensor.shape), value, dtype=tensor.dtype, device=tensor.device)
    if name in _OPERATORS:
        return getattr(torch.Tensor, _OPERATORS[name], None)
    found = getattr(torch.Tensor, name[:-1], None) if name.endswith("_") and not name.endswith("__") else None
    return found if callable(found) else None


def writes_itself(func: Any) -> bool:
    """Return whether a function writes into what it is called on."""
    return func is torch.Tensor.__setitem__ or _without_writing(func) is not None


def _name(func: Any) -> str:
    return getattr(func, "__name__", "")


def written(filled: Filled, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return what a call gives that writes random numbers into a tensor; ``Declined`` for another call."""
    if func is torch.Tensor.__setitem__ and _keeps_open(*args):
        return _set(filled, *args)
    compute, out = _without_writing(func), kwargs.get("out")
    if compute is None and out is None:
        return _WRITES_NOTHING
    if not (
        holds(UNKNOWN, *args, *kwargs.values())
        or _stays_open(_name(func), *args)
        or _may_be_drawn_into(args[0] if compute is not None else out)
    ):
        return _WRITES_NOTHING
    if compute is not None and isinstance(args[0], torch.Tensor):
        found = compute(*args, **kwargs)
        return filled.fill(args[0], found if found.dtype == args[0].dtype else found.to(args[0].dtype))
    if not isinstance(out, torch.Tensor):
        return Declined("out is no tensor")
    found = func(*args, **{name: value for name, value in kwargs.items() if name != "out"})
    return filled.fill(out, found)


def _keeps_open(tensor: Any, index: Any, value: Any) -> bool:
    """Return whether numbers are to stand in a tensor without a look at what is undecided."""
    written_to = _may_be_drawn_into(tensor) and isinstance(value, (Number, torch.Tensor))
    return holds(UNKNOWN, value) or written_to or _undecided(value)


def _may_be_drawn_into(tensor: Any) -> bool:
    """Return whether a tensor holds what was drawn, and has not become an ordinary one."""
    return isinstance(tensor, LazyTensor) and not is_stored(tensor)


def _stays_open(name: str, tensor: Any = None, *operands: Any) -> bool:
    """Return whether a method that writes looks at no outcome: one that moves them, or reckons with whole numbers."""
    if name in _MOVES:
        return _undecided(*operands)
    if _OPERATORS.get(name, name[:-1]) not in {*OF_WHOLE_NUMBERS, "masked_fill"} or tensor.dtype.is_floating_point:
        return False
    return not (isinstance(tensor, LazyTensor) and is_stored(tensor)) and _undecided(tensor, *operands)


def _undecided(*values: Any) -> bool:
    """Return whether some tensor holds an outcome that nobody has looked at."""
    return any(
        holds(Deferred, value) and not is_stored(value) and any(map(is_open, value.elements.flat))
        for value in values
        if isinstance(value, LazyTensor)
    )


def _set(filled: Filled, tensor: Any, index: Any, value: Any) -> None:
    if not isinstance(value, torch.Tensor):
        value = torch.tensor(value, dtype=tensor.dtype)
    if isinstance(index, torch.Tensor) and index.dtype is torch.bool and value.numel() == 1 and _undecided(index):
        mask = index.reshape(index.shape + (1,) * (tensor.ndim - index.ndim))
        filled.fill(tensor, torch.where(mask, value.to(tensor.dtype).reshape(()), tensor))
        return
    index = tuple(look_at(each) for each in index) if isinstance(index, tuple) else in_all(look_at, index)
    places = places_at(tuple(tensor.shape), index)
    elements = elements_of(tensor).flatten()
    values = spread(elements_of(value.to(tensor.dtype)), places.shape)
    elements[places.ravel()] = values.ravel()
    filled.fill(tensor, LazyTensor(elements.reshape(tuple(tensor.shape)), tensor.dtype, tensor.device))


# Tensors that are made of numbers

_FULL = {torch.full, torch.full_like, torch.Tensor.new_full}


def made(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the tensor that a function makes of random numbers; ``Declined`` for another function."""
    if func in _FULL:
        like = func(args[0], *(_zeros(value) for value in args[1:]), **{name: _zeros(kwargs[name]) for name in kwargs})
        value = next(value for value in (*args, *kwargs.values()) if holds_lazy(value))
        elements = np.empty(tuple(like.shape), dtype=object)
        elements[...] = single(opened(value))
        return _of_dtype(elements, like)
    if func in _OF_NUMBERS:
        data = next(value for value in (*args, *kwargs.values()) if holds_lazy(value))
        like = func(*(_zeros(value) for value in args), **{name: _zeros(value) for name, value in kwargs.items()})
        elements = np.empty(like.numel(), dtype=object)
        elements[:] = [opened(value) for value in _flat(data)]
        return _of_dtype(elements.reshape(tuple(like.shape)), like)
    return _MAKES_NOTHING


def _of_dtype(elements: Any, like: torch.Tensor) -> Any:
    """Return a tensor of the dtype of another one: of whole numbers where those are asked for."""
    whole = like.dtype is not torch.bool and all(
        isinstance(each, int) or (isinstance(each, Continuous) and is_whole(each)) for each in elements.flat
    )
    if whole or like.dtype in {torch.float32, torch.float64}:
        return LazyTensor(elements, like.dtype, like.device)
    return LazyTensor(elements, torch.float64, like.device).to(like.dtype)


_OF_NUMBERS = {torch.tensor, torch.as_tensor, torch.asarray, torch.scalar_tensor, torch.Tensor.new_tensor}


def from_numpy(array: Any) -> Any:
    """Return a tensor for an array of NumPy."""
    array = contents_of(array)
    return made(torch.as_tensor, (array,), {}) if type(array) is LazyArray else _FROM_NUMPY(array)


_FROM_NUMPY = torch.from_numpy


def _flat(data: Any) -> list[Any]:
    if isinstance(data, np.ndarray):
        return list(data.flat)
    return [each for item in data for each in _flat(item)] if isinstance(data, list | tuple) else [data]


def _zeros(value: Any) -> Any:
    """Return numbers in the place of random ones, of their kind."""
    if type(value) is LazyArray:
        whole = all(type(each) is LazyInt or isinstance(each, int) for each in value.flat)
        return np.zeros(value.shape, dtype=np.int64 if whole else np.float64)
    if type(value) in (list, tuple):
        return type(value)(map(_zeros, value))
    return 0 if type(value) is LazyInt else 0.0 if type(value) is LazyFloat else value
