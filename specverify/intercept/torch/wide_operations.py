"""What is done to outcomes among very many, and to very many random numbers: the handlers that come before the others.

Where these have no answer (``NotImplemented``) the elements are taken one by one, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, is_stored, look_at
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.deferred import Deferred
from specverify.intercept.unknowns.lookups import Crossing, crossing, lookup
from specverify.intercept.unknowns.many import Apart, Many, joined
from specverify.intercept.unknowns.many_algebra import applied_to_many
from specverify.intercept.unknowns.many_races import Race
from specverify.intercept.unknowns.wide import Selected, Wide, at_large_now, large

Handler = Callable[..., Any]


def at_large_first(name: str, function: Any, handler: Handler | None) -> Handler:
    """Return ``handler``, after what is known here of the operation ``name``; ``function`` is the operation."""
    wide = _HANDLERS.get(name)
    if wide is None:
        return handler or _unknown

    def answer(*args: Any, **kwargs: Any) -> Any:
        if at_large_now():
            try:
                found = wide(function, *args, **kwargs)
            except Apart:
                found = NotImplemented
            if found is not NotImplemented:
                return found
        return (handler or _unknown)(*args, **kwargs)

    return answer


def names() -> tuple[str, ...]:
    """Return the names of the operations that are known here."""
    return tuple(_HANDLERS)


def _unknown(*_: Any, **__: Any) -> Any:
    return NotImplemented


def _content(operand: Any) -> Any:
    """Return what an operand holds: elements, ``Many``, ``Crossing``, or an array or number."""
    if isinstance(operand, LazyTensor):
        return elements_of(operand) if is_stored(operand) else operand.content
    return operand.detach().double().cpu().numpy() if isinstance(operand, torch.Tensor) else operand


def _tensors(*operands: Any) -> list[Any]:
    return [operand for operand in operands if isinstance(operand, torch.Tensor)]


def _result_type(*operands: Any) -> torch.dtype:
    empty = [torch.empty((0,) * each.ndim, dtype=each.dtype) if isinstance(each, torch.Tensor) else each
             for each in operands[:2]]  # fmt: skip
    dtype: torch.dtype = empty[0].dtype if len(empty) == 1 else torch.result_type(*empty)
    return dtype


# Very many random numbers


def _arithmetic(known: str) -> Handler:
    """Return the handler of an operation of ``algebra`` on arrays; of outcomes among many, that of their values."""

    def handler(function: Any, *operands: Any, **named: Any) -> Any:
        contents = [_content(operand) for operand in operands]
        if not any(isinstance(each, Many) for each in contents):
            return _mapped(function, *operands, **named)
        plain = [each for each in contents if not isinstance(each, Many)]
        halves = known in {"maximum", "minimum", "clip"} and any(each.dtype.itemsize < 4 for each in _tensors(*operands))
        if named.get("alpha", 1) != 1 or named.get("rounding_mode") or halves or any(_is_open(each) for each in plain):
            return NotImplemented
        if known == "clip":
            ends = (named.get("min", (*contents[1:], None)[0]), named.get("max", (*contents[1:], None, None)[1]))
            contents = [contents[0], *(_bound(end, sign) for end, sign in zip(ends, (-np.inf, np.inf), strict=True))]
        found = applied_to_many(known, *contents)
        return LazyTensor(found, _result_type(*operands), _tensors(*operands)[0].device)

    return handler


def _bound(end: Any, otherwise: float) -> Any:
    return otherwise if end is None else _content(end)


def _is_open(content: Any) -> bool:
    return isinstance(content, Crossing) or getattr(content, "dtype", None) == object


def _reversed(function: Any, left: Any, right: Any, **more: Any) -> Any:
    return _arithmetic("subtract")(torch.ops.aten.sub, right, left, **more)


def _converted(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    """Convert to another dtype or device."""
    dtype, device = kwargs.get("dtype") or tensor.dtype, kwargs.get("device") or tensor.device
    content = _content(tensor)
    if (isinstance(content, Many) and dtype.is_floating_point) or isinstance(content, Crossing):
        return LazyTensor(content, dtype, device)
    found = NotImplemented if isinstance(content, Many) else _mapped(torch.Tensor.to, tensor, dtype=dtype)
    return found


def _copied(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    content = _content(tensor)
    if isinstance(content, np.ndarray):
        return NotImplemented
    return LazyTensor(content, tensor.dtype, kwargs.get("device") or tensor.device)


def _put_together(join: Callable[..., Any]) -> Handler:
    def handler(function: Any, tensors: Any, dim: int = 0) -> Any:
        contents = [_content(item) for item in tensors if item.numel()]
        if not any(isinstance(each, Many) for each in contents) or any(map(_is_open, contents)):
            return NotImplemented
        return LazyTensor(joined(contents, partial(join, axis=dim)), tensors[0].dtype, tensors[0].device)

    return handler


def _extreme(*, largest: bool) -> Handler:
    """Return the handler of ``argmax`` or ``argmin``: nobody has looked at who is first."""

    def handler(function: Any, tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        content = _content(tensor)
        if isinstance(content, Crossing) and largest and (dim in (-1, tensor.ndim - 1) or tensor.ndim == 1):
            return _of_rows(content.firsts(), tensor, dim, keepdim=keepdim)
        if not isinstance(content, Many) or dim not in (None, -1, tensor.ndim - 1):
            return NotImplemented
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
        content = _content(tensor)
        if not isinstance(content, Many) or dim not in (-1, tensor.ndim - 1):
            return NotImplemented
        races = [Race(row, largest=largest) for row in _rows(content, whole=False)]
        best, places = [race.best() for race in races], [race.winner() for race in races]
        return (
            _of_rows(best, tensor, dim, keepdim=keepdim, dtype=tensor.dtype),
            _of_rows(places, tensor, dim, keepdim=keepdim),
        )

    return handler


def _best(function: Any, tensor: Any, count: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if count != 1:
        return NotImplemented
    return _extreme_with_value(largest=largest)(function, tensor, dim, keepdim=True)


# A random number among very many bounds


def _searched(function: Any, bounds: Any, values: Any, **named: Any) -> Any:
    if isinstance(bounds, LazyTensor) or not isinstance(values, LazyTensor) or not large(bounds.shape[-1]):
        return NotImplemented
    rows, elements = bounds.detach().double().reshape(-1, bounds.shape[-1]).cpu().numpy(), elements_of(values)
    flat = elements.reshape(len(rows), -1)
    found = np.empty(flat.shape, dtype=object)
    for place in np.ndindex(flat.shape):
        if not isinstance(flat[place], Continuous):
            return NotImplemented
        found[place] = Wide(lookup(flat[place], rows[place[0]]), np.arange(rows.shape[1] + 1))
    return LazyTensor(found.reshape(tuple(values.shape)), torch.int64, values.device)


def _compared(*, swapped: bool) -> Handler:
    """Return the handler of a comparison: ``swapped`` for ``>`` and ``>=``."""

    def handler(function: Any, left: Any, right: Any) -> Any:
        found = _crossed(left, right, above=swapped)
        if found is NotImplemented:
            found = _crossed(right, left, above=not swapped)
        return _asked(function, left, right) if found is NotImplemented else found

    return handler


def _crossed(value: Any, bounds: Any, *, above: bool) -> Any:
    """Compare one random number, or one for each row, with rows of bounds."""
    if not isinstance(value, LazyTensor) or not isinstance(bounds, torch.Tensor) or isinstance(bounds, LazyTensor):
        return NotImplemented
    many = bounds.ndim and large(bounds.shape[-1]) and (value.ndim == 0 or value.shape[-1] == 1)
    if not many or not isinstance(value.content, np.ndarray):
        return NotImplemented
    shape = torch.broadcast_shapes(value.shape, bounds.shape)
    rows = bounds.detach().double().broadcast_to(shape).reshape(-1, shape[-1]).cpu().numpy()
    numbers = np.broadcast_to(value.elements, (*shape[:-1], 1)).reshape(-1).tolist()
    if not all(isinstance(number, Continuous) for number in numbers):
        return NotImplemented
    return LazyTensor(crossing(numbers, rows, tuple(shape), above=above), torch.bool, bounds.device)


def _turned(function: Any, tensor: Any) -> Any:
    content = _content(tensor)
    if not isinstance(content, Crossing) or tensor.dtype is not torch.bool:
        return NotImplemented
    return LazyTensor(content.turned(), torch.bool, tensor.device)


def _summed(function: Any, tensor: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    content = _content(tensor)
    along = [dim] if isinstance(dim, int) else dim
    if not isinstance(content, Crossing) or not (along in ([-1], [tensor.ndim - 1]) or tensor.ndim == 1):
        return NotImplemented
    dtype = tensor.dtype if tensor.dtype.is_floating_point else torch.int64
    return _of_rows(content.totals(), tensor, -1 if along else None, keepdim=keepdim, dtype=dtype)


# Outcomes among very many


def _elements(operands: Any) -> list[Any]:
    """Return the elements of the tensors among the operands, broadcast. Raises ``Apart`` for arrays of many."""
    tensors = _tensors(*operands)
    if any(isinstance(_content(each), (Many, Crossing)) for each in tensors):
        raise Apart
    return list(np.broadcast_arrays(*(elements_of(each) for each in tensors)))


def _each(operands: Any, one: Callable[..., Any]) -> Any:
    """Return what ``one`` makes of the elements, place by place."""
    arrays = _elements(operands)
    found = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = one(*(array[place] for array in arrays))
    return found


def _mapped(function: Any, *operands: Any, **named: Any) -> Any:
    """Return what an operation makes of numbers, and of outcomes among many for all of their values."""
    tensors = _tensors(*operands)
    if not _has_wide(tensors):
        return NotImplemented
    dtypes: set[Any] = set()

    def one(*elements: Any) -> Any:
        given = iter(zip(elements, tensors, strict=True))
        wide = {id(element.drawn): element for element in elements if _is_wide(element)}
        if len(wide) > 1 or any(isinstance(each, Deferred) and not _is_wide(each) for each in elements):
            raise Apart
        args = [_values(*next(given)) if isinstance(operand, torch.Tensor) else operand for operand in operands]
        found = function(*args, **named)
        dtypes.add(found.dtype)
        numbers = found.cpu().numpy() if found.dtype is not torch.bfloat16 else found.float().cpu().numpy()
        return next(iter(wide.values())).mapped(lambda _: numbers) if wide else numbers.item()

    found = _each(operands, one)
    return LazyTensor(found, dtypes.pop(), tensors[0].device) if len(dtypes) == 1 else NotImplemented


def _values(element: Any, tensor: Any) -> torch.Tensor:
    return torch.tensor(element.values if _is_wide(element) else element, dtype=tensor.dtype)


def _is_wide(element: Any) -> bool:
    return isinstance(element, Wide) and not element.decided


def _has_wide(tensors: list[Any]) -> bool:
    return any(
        isinstance(element, (Wide, Selected))
        for each in tensors
        if isinstance(each, LazyTensor) and isinstance(_content(each), np.ndarray)
        for element in _content(each).flat
    )


def _asked(function: Any, left: Any, right: Any) -> Any:
    """Compare outcomes among many with numbers: nobody knows the answer until it is looked at."""
    tensors = _tensors(left, right)
    if not _has_wide(tensors):
        return NotImplemented

    def one(*elements: Any) -> Any:
        pair = list(elements) if len(tensors) == 2 else [*elements, right] if tensors[0] is left else [left, *elements]
        wide = [element for element in pair if _is_wide(element)]
        if len(wide) != 1 or any(isinstance(each, Deferred) and each is not wide[0] for each in pair):
            raise Apart

        def question(values: Any) -> Any:
            return function(*(torch.tensor(values if each is wide[0] else each) for each in pair)).numpy()

        return Deferred(lambda: int(wide[0].holds(question)))

    return LazyTensor(_each((left, right), one), torch.bool, tensors[0].device)


def _chosen(function: Any, condition: Any, left: Any = None, right: Any = None) -> Any:
    """Answer ``where`` of three without a look at the condition."""
    operands = [condition, *(each if isinstance(each, torch.Tensor) else torch.tensor(each) for each in (left, right))]
    contents = [_content(each) for each in operands]
    if any(isinstance(each, Many) for each in contents[1:]):
        if _is_open(contents[0]) or any(map(_is_open, contents[1:])):
            return NotImplemented
        spread = list(np.broadcast_arrays(contents[0] != 0, *(each.ids if isinstance(each, Many) else each for each in contents[1:])))
        found = joined(contents[1:], lambda arrays: np.where(spread[0], *arrays))
        return LazyTensor(found, _result_type(left, right), condition.device)
    held = [each for each in operands if isinstance(each, LazyTensor) and isinstance(_content(each), np.ndarray)]
    if not any(isinstance(element, Deferred) for each in held for element in _content(each).flat):
        return NotImplemented
    if any(isinstance(element, Continuous) for each in held for element in _content(each).flat):
        return NotImplemented
    return LazyTensor(_each(operands, _selected), _result_type(*operands[1:]), condition.device)


def _selected(condition: Any, one: Any, other: Any) -> Any:
    if isinstance(condition, Deferred) and not condition.decided:
        return Selected(condition, one, other)
    return one if (condition.value() if isinstance(condition, Deferred) else condition) else other


def _filled(function: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _chosen(function, mask, torch.as_tensor(value, dtype=tensor.dtype), tensor)


def _taken(function: Any, table: Any, indices: Any, **_: Any) -> Any:
    """Look outcomes among many up in a table: ``table[outcome]``, or ``table[row, outcome]``."""
    last = indices[-1] if len(indices) == getattr(table, "ndim", -1) else None
    if isinstance(table, LazyTensor) or last is None or any(index is None for index in indices) or not _has_wide([last]):
        return NotImplemented

    def one(*places: Any) -> Any:
        row = table[tuple(int(place) for place in places[:-1])] if len(places) > 1 else table
        return _looked_up(row, places[-1])

    return LazyTensor(_each(indices, one), table.dtype, table.device)


def _looked_up(row: torch.Tensor, place: Any) -> Any:
    if not _is_wide(place):
        return row[int(place.value() if isinstance(place, Deferred) else place)].item()
    return place.mapped(lambda values: row.detach().cpu()[torch.as_tensor(values)].numpy())


def _gathered(function: Any, table: Any, dim: int, index: Any, **_: Any) -> Any:
    if isinstance(table, LazyTensor) or dim not in (-1, table.ndim - 1) or not _has_wide([index]):
        return NotImplemented
    elements = elements_of(index)
    found = np.empty(elements.shape, dtype=object)
    for place in np.ndindex(elements.shape):
        found[place] = _looked_up(table[place[:-1]], elements[place])
    return LazyTensor(found, table.dtype, table.device)


def _index_selected(function: Any, table: Any, dim: int, index: Any) -> Any:
    if getattr(table, "ndim", 0) != 1:
        return NotImplemented
    return _gathered(function, table, -1, index)


_ALGEBRA = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative",
            "reciprocal": "reciprocal", "pow": "power", "sqrt": "sqrt", "log": "log", "log2": "log2", "log10": "log10",
            "log1p": "log1p", "exp": "exp", "clamp": "clip", "clamp_min": "maximum", "clamp_max": "minimum",
            "maximum": "maximum", "minimum": "minimum"}  # fmt: skip
_HANDLERS: dict[str, Handler] = {
    **{name: _arithmetic(known) for name, known in _ALGEBRA.items()},
    **dict.fromkeys(("remainder", "floor_divide", "bitwise_right_shift", "bitwise_left_shift"), _mapped),
    **dict.fromkeys(("clone", "contiguous", "lift_fresh"), _copied),
    **{name: _compared(swapped=False) for name in ("lt", "le")},
    **{name: _compared(swapped=True) for name in ("gt", "ge")},
    **dict.fromkeys(("eq", "ne"), _asked),
    **dict.fromkeys(("bitwise_not", "logical_not"), _turned),
    "rsub": _reversed,
    "_to_copy": _converted,
    "cat": _put_together(np.concatenate),
    "stack": _put_together(np.stack),
    "argmax": _extreme(largest=True),
    "argmin": _extreme(largest=False),
    "max": _extreme_with_value(largest=True),
    "min": _extreme_with_value(largest=False),
    "topk": _best,
    "sum": _summed,
    "searchsorted": _searched,
    "bucketize": lambda function, values, bounds, **named: _searched(function, bounds, values, **named),
    "where": _chosen,
    "masked_fill": _filled,
    "index": _taken,
    "gather": _gathered,
    "index_select": _index_selected,
}
