"""What is done to very many random numbers together, and to one among very many bounds.

Each handler is called with the operation and its arguments, and returns ``Declined`` for what it does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from specverify.intercept.refusals import Declined, is_declined
from specverify.intercept.torch.dtypes import result_type
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, is_stored
from specverify.intercept.unknowns.algebra import check_not_equal
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.elementwise import applied_to_many
from specverify.intercept.unknowns.lookups import Crossing, crossing, lookup
from specverify.intercept.unknowns.many import Many, joined
from specverify.intercept.unknowns.many_races import Race
from specverify.intercept.unknowns.primitive import Family
from specverify.intercept.unknowns.primitives import OF_TORCH, PRIMITIVES, names_with
from specverify.intercept.unknowns.wide import Wide, large

Handler = Callable[..., Any]
_FEW = Declined("no operand is a noise vector, or another one is symbolic element by element")
_NOT_LAST = Declined("noise vectors race along the last dimension alone")
_MADE_OF_SEVERAL = Declined("a number among very many bounds is made of several uniforms")


def content_of(operand: Any) -> Any:
    """Return what an operand holds: elements, ``Many``, ``Crossing``, or an array or number."""
    if isinstance(operand, LazyTensor):
        return elements_of(operand) if is_stored(operand) else operand.content
    return operand.detach().double().cpu().numpy() if isinstance(operand, torch.Tensor) else operand


def _is_open(content: Any) -> bool:
    """Return whether there is something in it, but very many random numbers, that has no value."""
    return isinstance(content, Crossing) or (isinstance(content, np.ndarray) and content.dtype.kind == "O")


# Very many random numbers


def _arithmetic(known: str) -> Handler:
    """Return the handler of an operation of ``algebra``, by its name there."""

    def handler(function: Any, *operands: Any, **named: Any) -> Any:
        contents = [content_of(operand) for operand in operands]
        if not any(isinstance(each, Many) for each in contents):
            return _FEW
        tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
        clamps_halves = PRIMITIVES[known].family is Family.CLAMP and any(each.dtype.itemsize < 4 for each in tensors)
        scaled = named.get("alpha", 1) != 1 or named.get("rounding_mode")
        if scaled or clamps_halves or any(_is_open(each) for each in contents):
            return Declined(f"there is no rule for {known} with these options, in 16 bits, or of outcomes")
        if known == "clip":
            low, high = named.get("min", (*contents[1:], None)[0]), named.get("max", (*contents[1:], None, None)[1])
            contents = [contents[0], _bound(low, -np.inf), _bound(high, np.inf)]
        return LazyTensor(applied_to_many(known, *contents), result_type(known, *operands), tensors[0].device)

    return handler


def _bound(end: Any, otherwise: float) -> Any:
    return otherwise if end is None else content_of(end)


def _converted(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    dtype, content = kwargs.get("dtype") or tensor.dtype, content_of(tensor)
    if isinstance(content, Many):
        check_not_equal(str(dtype).removeprefix("torch."))
    if isinstance(content, Crossing) or (isinstance(content, Many) and dtype.is_floating_point):
        return LazyTensor(content, dtype, kwargs.get("device") or tensor.device)
    return Declined("there is no rule for this conversion of noise vectors")


def _copied(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    content = content_of(tensor)
    if isinstance(content, np.ndarray):
        return _FEW
    return LazyTensor(content, tensor.dtype, kwargs.get("device") or tensor.device)


def _put_together(join: Callable[..., Any]) -> Handler:
    """Return the handler of ``cat`` or ``stack``, as NumPy joins arrays."""

    def handler(function: Any, tensors: Any, dim: int = 0) -> Any:
        contents = [content_of(item) for item in tensors if item.numel()]
        if not any(isinstance(each, Many) for each in contents) or any(map(_is_open, contents)):
            return _FEW
        return LazyTensor(joined(contents, partial(join, axis=dim)), tensors[0].dtype, tensors[0].device)

    return handler


def _chosen(function: Any, condition: Any, left: Any = None, right: Any = None) -> Any:
    """Answer ``where`` of three."""
    given = [condition, *(each if isinstance(each, torch.Tensor) else torch.tensor(each) for each in (left, right))]
    contents = [content_of(each) for each in given]
    if not any(isinstance(each, Many) for each in contents[1:]) or any(map(_is_open, contents)):
        return _FEW
    shape = torch.broadcast_tensors(*(torch.empty(tuple(each.shape)) for each in given))[0].shape  # type: ignore[no-untyped-call]
    inside, *parts = (_spread(each, tuple(shape)) for each in contents)
    found = joined(parts, lambda arrays: np.where(inside != 0, *arrays))
    return LazyTensor(found, result_type("where", *given[1:]), condition.device)


def _spread(content: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(content, Many):
        return content.taken(lambda array: np.broadcast_to(array, shape))
    return np.broadcast_to(content, shape)


def _filled(function: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _chosen(function, mask, torch.as_tensor(value, dtype=tensor.dtype), tensor)


# Races


def _extreme(*, largest: bool) -> Handler:
    """Return the handler of ``argmax`` or ``argmin``: nobody has looked at who is first."""

    def handler(function: Any, tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        content = content_of(tensor)
        if isinstance(content, Crossing) and largest and (dim in (-1, tensor.ndim - 1) or tensor.ndim == 1):
            return _of_rows(content.firsts(), tensor, dim, keepdim=keepdim)
        if not isinstance(content, Many) or dim not in (None, -1, tensor.ndim - 1):
            return _NOT_LAST
        found = [Race(row, largest=largest).winner() for row in _rows(content, whole=dim is None)]
        return _of_rows(found, tensor, dim, keepdim=keepdim)

    return handler


def _rows(content: Many, *, whole: bool) -> list[Many]:
    flat = content.taken(lambda array: array.reshape(1 if whole else -1, array.size if whole else array.shape[-1]))
    return [flat.taken(lambda array, row=row: array[row]) for row in range(flat.shape[0])]  # type: ignore[misc]


def _of_rows(found: list[Any], tensor: Any, dim: int | None, *, keepdim: bool, dtype: Any = torch.int64) -> LazyTensor:
    elements = np.empty(len(found), dtype=object)
    elements[:] = found
    shape = () if dim is None else (*tensor.shape[:-1], *((1,) if keepdim else ()))
    return LazyTensor(elements.reshape(tuple(shape)), dtype, tensor.device)


def _extreme_with_value(*, largest: bool) -> Handler:
    """Return the handler of ``max`` or ``min`` along the last dimension: the winners, and how good they are."""

    def handler(function: Any, tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        content = content_of(tensor)
        if not isinstance(content, Many) or dim not in (-1, tensor.ndim - 1):
            return _NOT_LAST
        races = [Race(row, largest=largest) for row in _rows(content, whole=False)]
        best, places = [race.best() for race in races], [race.winner() for race in races]
        return (
            _of_rows(best, tensor, dim, keepdim=keepdim, dtype=tensor.dtype),
            _of_rows(places, tensor, dim, keepdim=keepdim),
        )

    return handler


def _best(function: Any, tensor: Any, count: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if count != 1:
        return Declined("there is no rule for the first ranks of a noise vector, but for the first one")
    return _extreme_with_value(largest=largest)(function, tensor, dim, keepdim=True)


# One random number among very many bounds


def _searched(function: Any, bounds: Any, values: Any, **named: Any) -> Any:
    if isinstance(bounds, LazyTensor) or not isinstance(values, LazyTensor) or not large(bounds.shape[-1]):
        return _FEW
    rows = bounds.detach().double().reshape(-1, bounds.shape[-1]).cpu().numpy()
    flat: list[Any] = elements_of(values).reshape(len(rows), -1).tolist()
    if not all(isinstance(value, Continuous) for row in flat for value in row):
        return _MADE_OF_SEVERAL
    count = np.arange(rows.shape[1] + 1)
    found = [Wide(lookup(value, bounds), count) for bounds, row in zip(rows, flat, strict=True) for value in row]
    elements = np.empty(len(found), dtype=object)
    elements[:] = found
    return LazyTensor(elements.reshape(tuple(values.shape)), torch.int64, values.device)


def _compared(*, swapped: bool) -> Handler:
    """Return the handler of a comparison: ``swapped`` for ``>`` and ``>=``."""

    def handler(function: Any, left: Any, right: Any) -> Any:
        found = _crossed(left, right, above=swapped)
        return _crossed(right, left, above=not swapped) if is_declined(found) else found

    return handler


def _crossed(value: Any, bounds: Any, *, above: bool) -> Any:
    """Compare one random number, or one for each row, with rows of bounds."""
    if not isinstance(value, LazyTensor) or not isinstance(bounds, torch.Tensor) or isinstance(bounds, LazyTensor):
        return _FEW
    one_a_row = value.ndim == 0 or value.shape[-1] == 1
    if not (bounds.ndim and one_a_row and large(bounds.shape[-1]) and isinstance(value.content, np.ndarray)):
        return _FEW
    shape = np.broadcast_shapes(tuple(value.shape), tuple(bounds.shape))
    rows = bounds.detach().double().broadcast_to(shape).reshape(-1, shape[-1]).cpu().numpy()
    numbers = np.broadcast_to(value.elements, (*shape[:-1], 1)).reshape(-1).tolist()
    if not all(isinstance(number, Continuous) for number in numbers):
        return _MADE_OF_SEVERAL
    return LazyTensor(crossing(numbers, rows, shape, above=above), torch.bool, bounds.device)


def _turned(function: Any, tensor: Any) -> Any:
    content = content_of(tensor)
    if not isinstance(content, Crossing) or tensor.dtype is not torch.bool:
        return _FEW
    return LazyTensor(content.turned(), torch.bool, tensor.device)


def _summed(function: Any, tensor: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    content, along = content_of(tensor), [dim] if isinstance(dim, int) else dim
    if not isinstance(content, Crossing) or not (along in ([-1], [tensor.ndim - 1]) or tensor.ndim == 1):
        return _FEW
    dtype = tensor.dtype if tensor.dtype.is_floating_point else torch.int64
    return _of_rows(content.totals(), tensor, -1 if along else None, keepdim=keepdim, dtype=dtype)


_ARITHMETIC = {name: row for name, row in OF_TORCH.items() if row.family in {Family.ARITHMETIC, Family.CLAMP}}
_CROSSED = names_with({name: row for name, row in OF_TORCH.items() if row.family is Family.COMPARISON}, "vector")
HANDLERS: dict[str, Handler] = {
    **{name: _arithmetic(known) for name, known in names_with(_ARITHMETIC, "vector").items()},
    "rsub": lambda function, left, right, **more: _arithmetic("subtract")(function, right, left, **more),
    "_to_copy": _converted,
    **dict.fromkeys(("clone", "contiguous", "lift_fresh"), _copied),
    "cat": _put_together(np.concatenate),
    "stack": _put_together(np.stack),
    "where": _chosen,
    "masked_fill": _filled,
    "argmax": _extreme(largest=True),
    "argmin": _extreme(largest=False),
    "max": _extreme_with_value(largest=True),
    "min": _extreme_with_value(largest=False),
    "topk": _best,
    "searchsorted": _searched,
    "bucketize": lambda function, values, bounds, **named: _searched(function, bounds, values, **named),
    **{name: _compared(swapped=known.startswith("greater")) for name, known in _CROSSED.items()},
    **dict.fromkeys(("bitwise_not", "logical_not"), _turned),
    "sum": _summed,
}
"""By the names in ``torch.ops.aten``."""
