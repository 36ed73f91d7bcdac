"""What is done to outcomes among very many that nobody has looked at, for all their values at once.

Each handler is called with the operation and its arguments, and returns ``Declined`` for what it does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from specverify.intercept.refusals import Declined, RuleDeclined
from specverify.intercept.torch.dtypes import result_type
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, is_stored
from specverify.intercept.unknowns.deferred import Deferred, known
from specverify.intercept.unknowns.joined import Unknown
from specverify.intercept.unknowns.primitive import Family
from specverify.intercept.unknowns.primitives import OF_TORCH, names_of, names_with
from specverify.intercept.unknowns.wide import Selected, Wide

Handler = Callable[..., Any]
_NO_OUTCOME = Declined("no operand is an outcome among very many, in a place where that is followed")


def _tensors(operands: Any) -> list[Any]:
    return [operand for operand in operands if isinstance(operand, torch.Tensor)]


def _is_few(tensor: Any) -> bool:
    """Return whether it is a lazy tensor that holds its elements one by one."""
    return isinstance(tensor, LazyTensor) and (is_stored(tensor) or isinstance(tensor.content, np.ndarray))


def _is_wide(element: Any) -> bool:
    return isinstance(element, Wide) and not element.decided


def _has_wide(tensors: list[Any]) -> bool:
    return any(
        isinstance(each, (Wide, Selected)) for tensor in tensors if _is_few(tensor) for each in elements_of(tensor).flat
    )


def _each(operands: Any, one: Callable[..., Any]) -> Any:
    """Return what ``one`` makes of the elements of the tensors among the operands, broadcast, place by place."""
    tensors = _tensors(operands)
    if any(isinstance(each, LazyTensor) and not _is_few(each) for each in tensors):
        raise RuleDeclined("noise vectors meet outcomes")
    arrays = np.broadcast_arrays(*(elements_of(each) for each in tensors))
    found = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(found.shape):
        found[place] = one(*(array[place] for array in arrays))
    return found


# Numbers made of outcomes, and questions to them


def _mapped(function: Any, *operands: Any, **named: Any) -> Any:
    """Return what an operation makes of numbers, and of outcomes for all of their values."""
    tensors = _tensors(operands)
    if not _has_wide(tensors):
        return _NO_OUTCOME
    dtypes: set[Any] = set()

    def one(*elements: Any) -> Any:
        given = iter(zip(elements, tensors, strict=True))
        wide = {id(element.drawn): element for element in elements if _is_wide(element)}
        if len(wide) > 1 or any(isinstance(each, (Deferred, Unknown)) and not _is_wide(each) for each in elements):
            raise RuleDeclined("several draws decide one element")
        args = [_values(*next(given)) if isinstance(operand, torch.Tensor) else operand for operand in operands]
        found = function(*args, **named)
        dtypes.add(found.dtype)
        numbers = (found.float() if found.dtype is torch.bfloat16 else found).cpu().numpy()
        return next(iter(wide.values())).mapped(lambda _: numbers) if wide else numbers.item()

    found = _each(operands, one)
    return (
        LazyTensor(found, dtypes.pop(), tensors[0].device)
        if len(dtypes) == 1
        else Declined("elements have several dtypes")
    )


def _values(element: Any, tensor: Any) -> torch.Tensor:
    return torch.tensor(element.values if _is_wide(element) else element, dtype=tensor.dtype)


def _converted(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    return _mapped(torch.Tensor.to, tensor, dtype=kwargs.get("dtype") or tensor.dtype)


def _asked(function: Any, left: Any, right: Any) -> Any:
    """Compare outcomes with numbers: nobody knows the answer until it is looked at."""
    tensors = _tensors((left, right))
    if not _has_wide(tensors):
        return _NO_OUTCOME

    def one(*elements: Any) -> Any:
        pair = list(elements) if len(tensors) == 2 else [*elements, right] if tensors[0] is left else [left, *elements]
        wide = [element for element in pair if _is_wide(element)]
        if len(wide) != 1 or any(isinstance(each, (Deferred, Unknown)) and each is not wide[0] for each in pair):
            raise RuleDeclined("several draws decide one comparison")

        def question(values: Any) -> Any:
            return function(*(torch.tensor(values if each is wide[0] else each) for each in pair)).numpy()

        return Deferred(lambda: int(wide[0].holds(question)))

    return LazyTensor(_each((left, right), one), torch.bool, tensors[0].device)


# Choices and tables


def _chosen(function: Any, condition: Any, left: Any = None, right: Any = None) -> Any:
    """Answer ``where`` of three without a look at the condition."""
    given = [condition, *(each if isinstance(each, torch.Tensor) else torch.tensor(each) for each in (left, right))]
    held = [element for each in given if _is_few(each) for element in elements_of(each).flat]
    if not any(isinstance(each, Deferred) for each in held) or any(isinstance(each, Unknown) for each in held):
        return _NO_OUTCOME
    return LazyTensor(_each(given, _selected), result_type("where", *given[1:]), condition.device)


def _selected(condition: Any, one: Any, other: Any) -> Any:
    if isinstance(condition, Deferred) and not condition.decided:
        return Selected(condition, one, other)
    return one if known(condition) else other


def _filled(function: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _chosen(function, mask, torch.as_tensor(value, dtype=tensor.dtype), tensor)


def _taken(function: Any, table: Any, indices: Any, **_: Any) -> Any:
    """Look outcomes up in a table: ``table[outcome]``, or ``table[row, outcome]``."""
    whole = len(indices) == getattr(table, "ndim", -1) and all(index is not None for index in indices)
    if isinstance(table, LazyTensor) or not whole or not _has_wide([indices[-1]]):
        return _NO_OUTCOME

    def one(*places: Any) -> Any:
        return _looked_up(table[tuple(int(known(place)) for place in places[:-1])], places[-1])

    return LazyTensor(_each(indices, one), table.dtype, table.device)


def _looked_up(row: torch.Tensor, place: Any) -> Any:
    if not _is_wide(place):
        return row[int(known(place))].item()
    return place.mapped(lambda values: row.detach().cpu()[torch.as_tensor(values)].numpy())


def _gathered(function: Any, table: Any, dim: int, index: Any, **_: Any) -> Any:
    if isinstance(table, LazyTensor) or dim not in (-1, table.ndim - 1) or not _has_wide([index]):
        return _NO_OUTCOME
    elements = elements_of(index)
    found = np.empty(elements.shape, dtype=object)
    for place in np.ndindex(elements.shape):
        found[place] = _looked_up(table[place[:-1]], elements[place])
    return LazyTensor(found, table.dtype, table.device)


def _index_selected(function: Any, table: Any, dim: int, index: Any) -> Any:
    return _gathered(function, table, -1, index) if getattr(table, "ndim", 0) == 1 else _NO_OUTCOME


_SHIFTS = ("bitwise_right_shift", "bitwise_left_shift")
_MAPS = dict.fromkeys((*names_of(OF_TORCH, Family.ARITHMETIC, Family.CLAMP).keys() & names_with(OF_TORCH, "outcome"),
                       "div", *_SHIFTS))  # fmt: skip
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_MAPS, _mapped),
    "rsub": lambda function, left, right, **more: _mapped(torch.sub, right, left, **more),
    "_to_copy": _converted,
    **dict.fromkeys(names_of(OF_TORCH, Family.COMPARISON), _asked),
    "where": _chosen,
    "masked_fill": _filled,
    "index": _taken,
    "gather": _gathered,
    "index_select": _index_selected,
}
"""By the names in ``torch.ops.aten``."""
