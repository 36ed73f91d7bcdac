"""Torch operations in large-vocabulary mode: noise vectors, lookups among very many bounds, and unread outcomes.

Each handler gets the operation and its arguments, and returns ``Declined`` if it has no rule. These handlers are tried
before the general ones; if they decline, elements are handled one by one, as in a small vocabulary. Operations on
outcomes apply to all possible values at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from specverify.intercept.refusals import Declined, RuleDeclined, is_declined
from specverify.intercept.symbolic.algebra import check_not_equal
from specverify.intercept.symbolic.continuous import Continuous, any_symbolic
from specverify.intercept.symbolic.deferred import Choice, Deferred, known
from specverify.intercept.symbolic.large import Crossing, Wide, large
from specverify.intercept.symbolic.primitives import (
    OF_TORCH,
    PRIMITIVES,
    Family,
    Result,
    applied_to_many,
    names_of,
    with_rule,
)
from specverify.intercept.symbolic.vectors import Many, joined
from specverify.intercept.torch.elementwise import result_type
from specverify.intercept.torch.tensors import (
    SymbolicTensor,
    bounds_and_values,
    elements_of,
    gives_pairs,
    is_stored,
)

# Many operations


Handler = Callable[..., Any]
_FEW = Declined("no operand is a noise vector, or another one is symbolic element by element")
_NOT_LAST = Declined("noise vectors race along the last dimension alone")
_MADE_OF_SEVERAL = Declined("a number among very many bounds is made of several uniforms")


def content_of(operand: Any) -> Any:
    """Return the elements of ``operand``, a tensor or a number, in the form in which they are stored.

    A symbolic tensor has an object array, a noise vector or a ``Crossing``; any other operand plain numbers.
    """
    if isinstance(operand, SymbolicTensor):
        return elements_of(operand) if is_stored(operand) else operand.content
    return operand.detach().double().cpu().numpy() if isinstance(operand, torch.Tensor) else operand


def _tensors(operands: Iterable[Any]) -> list[Any]:
    return [operand for operand in operands if isinstance(operand, torch.Tensor)]


def _as_tensors(condition: Any, *cases: Any) -> list[Any]:
    """Return ``condition`` and ``cases``, the operands of ``where``, as tensors."""
    return [condition, *(each if isinstance(each, torch.Tensor) else torch.tensor(each) for each in cases)]


def _is_open(content: Any) -> bool:
    """Return whether ``content`` is an object array of elements, or a ``Crossing`` (a comparison with many bounds).

    ``content`` is what ``content_of`` returns. The result is False for noise vectors and plain numbers.
    """
    return isinstance(content, Crossing) or (isinstance(content, np.ndarray) and content.dtype.kind == "O")


# Very many random numbers


def _arithmetic(name: str) -> Handler:
    """Return the handler of the arithmetic operation or clamp ``name`` on noise vectors."""

    def handler(function: Any, *operands: Any, **named: Any) -> Any:
        contents = [content_of(operand) for operand in operands]
        if not any(isinstance(each, Many) for each in contents):
            return _FEW
        tensors = _tensors(operands)
        clamps_halves = PRIMITIVES[name].family is Family.CLAMP and any(each.dtype.itemsize < 4 for each in tensors)
        scaled = named.get("alpha", 1) != 1 or named.get("rounding_mode")
        if scaled or clamps_halves or any(_is_open(each) for each in contents):
            return Declined(f"there is no rule for {name} with these options, in 16 bits, or of outcomes")
        if name == "clip":
            low, high = named.get("min", (*contents[1:], None)[0]), named.get("max", (*contents[1:], None, None)[1])
            contents = [contents[0], _bound(low, -np.inf), _bound(high, np.inf)]
        return SymbolicTensor(applied_to_many(name, *contents), result_type(name, *operands), tensors[0].device)

    return handler


def _bound(end: Any, otherwise: float) -> Any:
    return otherwise if end is None else content_of(end)


def _converted(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    dtype, content = kwargs.get("dtype") or tensor.dtype, content_of(tensor)
    if isinstance(content, Many):
        check_not_equal(str(dtype).removeprefix("torch."))
    if isinstance(content, Crossing) or (isinstance(content, Many) and dtype.is_floating_point):
        return SymbolicTensor(content, dtype, kwargs.get("device") or tensor.device)
    return Declined("there is no rule for this conversion of noise vectors")


def _copied(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    content = content_of(tensor)
    if isinstance(content, np.ndarray):
        return _FEW
    return SymbolicTensor(content, tensor.dtype, kwargs.get("device") or tensor.device)


def _put_together(join: Callable[..., Any]) -> Handler:
    """Return the handler of ``cat`` or ``stack`` of noise vectors; ``join`` is NumPy's function of this kind."""

    def handler(function: Any, tensors: Any, dim: int = 0) -> Any:
        contents = [content_of(item) for item in tensors if item.numel()]
        if not any(isinstance(each, Many) for each in contents) or any(map(_is_open, contents)):
            return _FEW
        return SymbolicTensor(joined(contents, partial(join, axis=dim)), tensors[0].dtype, tensors[0].device)

    return handler


def _chosen(function: Any, condition: Any, left: Any = None, right: Any = None) -> Any:
    """Handle ``where``: select ``left`` or ``right`` by ``condition``, if at least one of the two is a noise vector.

    Returns ``Declined`` for other operands.
    """
    given = _as_tensors(condition, left, right)
    contents = [content_of(each) for each in given]
    if not any(isinstance(each, Many) for each in contents[1:]) or any(map(_is_open, contents)):
        return _FEW
    shape = torch.broadcast_tensors(*(torch.empty(tuple(each.shape)) for each in given))[0].shape  # type: ignore[no-untyped-call]
    inside, *parts = (_spread(each, tuple(shape)) for each in contents)
    result = joined(parts, lambda arrays: np.where(inside != 0, *arrays))
    return SymbolicTensor(result, result_type("", *given[1:]), condition.device)


def _spread(content: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(content, Many):
        return content.taken(lambda array: np.broadcast_to(array, shape))
    return np.broadcast_to(content, shape)


def _filled(function: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _chosen(function, mask, torch.as_tensor(value, dtype=tensor.dtype), tensor)


# Rows


def _of_rows(
    results: list[Any], tensor: Any, dim: int | None, *, keepdim: bool, dtype: Any = torch.int64
) -> SymbolicTensor:
    elements = np.empty(len(results), dtype=object)
    elements[:] = results
    shape = () if _is_all(dim) else (*tensor.shape[:-1], *((1,) if keepdim else ()))
    return SymbolicTensor(elements.reshape(tuple(shape)), dtype, tensor.device)


def _is_all(dim: Any) -> bool:
    """Return whether ``dim``, the argument of a reduction, stands for all dimensions."""
    return dim is None or (not isinstance(dim, int) and not len(dim))


def _along(content: Any, dim: Any) -> Any:
    """Return ``content`` in a form whose last axis is the one that a reduction over ``dim`` reduces.

    ``content``, a result of ``content_of``, is a noise vector or a ``Crossing``. A noise vector is flattened if ``dim``
    stands for all dimensions. Returns ``Declined`` for a reduction of any other axis than the last.
    """
    dims = [] if _is_all(dim) else [dim] if isinstance(dim, int) else list(dim)
    if not isinstance(content, (Many, Crossing)):
        return _FEW
    last = dims in ([-1], [len(content.shape) - 1]) or len(content.shape) == 1
    if not last and (dims or isinstance(content, Crossing)):
        return _NOT_LAST
    return content if last or isinstance(content, Crossing) else content.taken(lambda array: array.reshape(1, -1))


def _totals(row: Any) -> Handler:
    """Return the handler of a sum of a ``Crossing`` (a comparison of one number with many bounds).

    ``row`` is the row of the table of primitives, whose vector rule is applied.
    """

    def handler(function: Any, tensor: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        content = _along(content_of(tensor), dim)
        if is_declined(content):
            return content
        dtype = tensor.dtype if tensor.dtype.is_floating_point else torch.int64
        return _of_rows(row.vector(content), tensor, dim, keepdim=keepdim, dtype=dtype)

    return handler


def _extremes(row: Any) -> Handler:
    """Return the handler of the maximum or minimum of noise vectors, or of their indices.

    The results stay symbolic.

    ``row`` is the row of the operation in the table of primitives.
    """

    def handler(function: Any, tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        content = _along(content_of(tensor), dim)
        if is_declined(content):
            return content
        contests = row.vector(content)
        if row.result is not Result.PLACES:
            best = _of_rows([each.best() for each in contests], tensor, dim, keepdim=keepdim, dtype=tensor.dtype)
            if _is_all(dim) or not gives_pairs(function):
                return best
        places = _of_rows([each.winner() for each in contests], tensor, dim, keepdim=keepdim)
        return places if row.result is Result.PLACES else (best, places)

    return handler


def _first(row: Any) -> Handler:
    """Return the handler of ``topk`` of noise vectors, for k = 1; ``row`` is its row in the table of primitives."""

    def handler(function: Any, tensor: Any, count: int, dim: int = -1, largest: bool = True, **_: Any) -> Any:
        content = _along(content_of(tensor), dim)
        if count != 1 or is_declined(content):
            return Declined("there is no rule for the first ranks of a noise vector, only for the first one")
        contests = row.vector(content, largest=largest)
        best, places = [each.best() for each in contests], [each.winner() for each in contests]
        return (
            _of_rows(best, tensor, dim, keepdim=True, dtype=tensor.dtype),
            _of_rows(places, tensor, dim, keepdim=True),
        )

    return handler


# One random number among very many bounds


def _searched(row: Any) -> Handler:
    """Return the handler of ``searchsorted`` and ``bucketize``, which look up symbolic numbers among very many bounds.

    ``row`` is the row of the operation in the table of primitives.
    """

    def handler(function: Any, *args: Any, **more: Any) -> Any:
        bounds, values = bounds_and_values(function, *args, **more)
        if isinstance(bounds, SymbolicTensor) or not isinstance(values, SymbolicTensor) or not large(bounds.shape[-1]):
            return _FEW
        every = bounds.detach().double().reshape(-1, bounds.shape[-1]).cpu().numpy()
        flat: list[Any] = elements_of(values).reshape(len(every), -1).tolist()
        if not all(isinstance(value, Continuous) for among in flat for value in among):
            return _MADE_OF_SEVERAL
        count = np.arange(every.shape[1] + 1)
        result = np.empty(values.numel(), dtype=object)
        result[:] = [
            Wide(row.vector(value, bounds), count) for bounds, among in zip(every, flat, strict=True) for value in among
        ]
        return SymbolicTensor(result.reshape(tuple(values.shape)), torch.int64, values.device)

    return handler


def _compared(row: Any) -> Handler:
    """Return the handler of a comparison of a symbolic number with very many bounds.

    ``row`` is the row of the comparison in the table of primitives.
    """

    def handler(function: Any, left: Any, right: Any) -> Any:
        result = _crossed(partial(row.vector, on_the_left=True), left, right)
        return _crossed(partial(row.vector, on_the_left=False), right, left) if is_declined(result) else result

    return handler


def _crossed(rule: Callable[..., Any], value: Any, bounds: Any) -> Any:
    """Return the comparison of symbolic numbers with rows of ``bounds``, as a tensor of symbolic bools.

    ``value`` is one symbolic number, or one for each row. ``rule(numbers, rows, shape)`` is the rule of the comparison.
    Returns ``Declined`` for other operands.
    """
    if (
        not isinstance(value, SymbolicTensor)
        or not isinstance(bounds, torch.Tensor)
        or isinstance(bounds, SymbolicTensor)
    ):
        return _FEW
    one_a_row = value.ndim == 0 or value.shape[-1] == 1
    if not (bounds.ndim and one_a_row and large(bounds.shape[-1]) and isinstance(value.content, np.ndarray)):
        return _FEW
    shape = np.broadcast_shapes(tuple(value.shape), tuple(bounds.shape))
    rows = bounds.detach().double().broadcast_to(shape).reshape(-1, shape[-1]).cpu().numpy()
    numbers = np.broadcast_to(value.elements, (*shape[:-1], 1)).reshape(-1).tolist()
    if not all(isinstance(number, Continuous) for number in numbers):
        return _MADE_OF_SEVERAL
    return SymbolicTensor(rule(numbers, rows, shape), torch.bool, bounds.device)


def _turned(row: Any) -> Handler:
    """Return the handler of ``~`` for a ``Crossing`` (a comparison of one number with many bounds).

    ``row`` is the row of the operation in the table of primitives.
    """

    def handler(function: Any, tensor: Any) -> Any:
        content = content_of(tensor)
        if not isinstance(content, Crossing) or tensor.dtype is not torch.bool:
            return _FEW
        return SymbolicTensor(row.vector(content), torch.bool, tensor.device)

    return handler


_FAMILIES: dict[Family, Callable[[Any], Handler]] = {
    Family.ARITHMETIC: lambda row: _arithmetic(row.name),
    Family.CLAMP: lambda row: _arithmetic(row.name),
    Family.COMPARISON: _compared,
    Family.CHOICE: lambda row: _chosen,
    Family.LOGIC: _turned,
    Family.REDUCTION: _totals,
    Family.EXTREME: _extremes,
    Family.ORDERING: _first,
    Family.LOOKUP: _searched,
    Family.COPY: lambda row: _copied,
    Family.JOINING: lambda row: _put_together(row.scalar),
}
"""Family -> adapter of torch arguments for its vector rules."""
OF_VECTORS: dict[str, Handler] = {
    **{name: _FAMILIES[row.family](row) for name, row in with_rule(OF_TORCH, "vector").items()
       if row.family in _FAMILIES},
    "rsub": lambda function, left, right, **more: _arithmetic("subtract")(function, right, left, **more),
    "_to_copy": _converted,
    "masked_fill": _filled,
}  # fmt: skip
"""Name in ``torch.ops.aten`` -> handler for noise vectors."""


# Wide operations


_NO_OUTCOME = Declined("no operand is an outcome among very many, in a place where that is followed")


def _is_few(tensor: Any) -> bool:
    """Return whether ``tensor`` is a symbolic tensor whose elements are stored one by one: it has no noise vector."""
    return isinstance(tensor, SymbolicTensor) and (is_stored(tensor) or isinstance(tensor.content, np.ndarray))


def _is_wide(element: Any) -> bool:
    return isinstance(element, Wide) and not element.decided


def _has_wide(tensors: list[Any]) -> bool:
    return any(isinstance(element, Wide | Choice) for element in _elements(tensors))


def _elements(tensors: list[Any]) -> list[Any]:
    """Return the elements of those ``tensors`` that store their elements one by one, not as a noise vector."""
    return [element for tensor in tensors if _is_few(tensor) for element in elements_of(tensor).flat]


def _wide_of(elements: Sequence[Any]) -> list[Any]:
    """Return those of ``elements`` that are unread outcomes with very many values.

    Raises ``RuleDeclined`` in two cases: these are outcomes of several draws; or another element is a symbolic number
    or an unread outcome with few values.
    """
    wide = [element for element in elements if _is_wide(element)]
    beside = [element for element in elements if not _is_wide(element)]
    if (
        len({id(element.drawn) for element in wide}) > 1
        or any_symbolic(beside)
        or any(isinstance(element, Deferred) for element in beside)
    ):
        raise RuleDeclined("several draws decide one element")
    return wide


def _each(operands: Any, one: Callable[..., Any]) -> Any:
    """Return the array of the results of ``one``, called with the elements of all tensors among ``operands``.

    The tensors are broadcast. Raises ``RuleDeclined`` if one of them is a noise vector.
    """
    tensors = _tensors(operands)
    if any(isinstance(each, SymbolicTensor) and not _is_few(each) for each in tensors):
        raise RuleDeclined("noise vectors meet outcomes")
    arrays = np.broadcast_arrays(*(elements_of(each) for each in tensors))
    result = np.empty(arrays[0].shape, dtype=object)
    for place in np.ndindex(result.shape):
        result[place] = one(*(array[place] for array in arrays))
    return result


# Numbers made of outcomes, and questions to them


def _mapped(function: Any, *operands: Any, **named: Any) -> Any:
    """Return ``function`` of ``operands``, of which some have unread outcomes among very many, as an unread tensor.

    The function is computed for all values at once. Returns ``Declined`` if no operand has such an outcome, or if the
    elements would have several dtypes.
    """
    tensors = _tensors(operands)
    if not _has_wide(tensors):
        return _NO_OUTCOME
    dtypes: set[Any] = set()

    def one(*elements: Any) -> Any:
        given = iter(zip(elements, tensors, strict=True))
        wide = _wide_of(elements)
        args = [_values(*next(given)) if isinstance(operand, torch.Tensor) else operand for operand in operands]
        result = function(*args, **named)
        dtypes.add(result.dtype)
        numbers = (result.float() if result.dtype is torch.bfloat16 else result).cpu().numpy()
        return wide[0].mapped(lambda _: numbers) if wide else numbers.item()

    result = _each(operands, one)
    return (
        SymbolicTensor(result, dtypes.pop(), tensors[0].device)
        if len(dtypes) == 1
        else Declined("elements have several dtypes")
    )


def _values(element: Any, tensor: Any) -> torch.Tensor:
    return torch.tensor(element.values if _is_wide(element) else element, dtype=tensor.dtype)


def _outcome_converted(function: Any, tensor: Any, *_: Any, **kwargs: Any) -> Any:
    return _mapped(torch.Tensor.to, tensor, dtype=kwargs.get("dtype") or tensor.dtype)


def _asked(function: Any, left: Any, right: Any) -> Any:
    """Return the comparison ``function`` of ``left`` and ``right``, which contain unread outcomes among very many.

    Each bool of the result is drawn when it is read. Returns ``Declined`` if neither operand has such an outcome.
    """
    tensors = _tensors((left, right))
    if not _has_wide(tensors):
        return _NO_OUTCOME

    def one(*elements: Any) -> Any:
        pair = list(elements) if len(tensors) == 2 else [*elements, right] if tensors[0] is left else [left, *elements]
        wide = _wide_of(pair)
        if len(wide) != 1:
            raise RuleDeclined("an outcome is compared with itself, or none is open")

        def question(values: Any) -> Any:
            return function(*(torch.tensor(values if each is wide[0] else each) for each in pair)).numpy()

        return Deferred(lambda: int(wide[0].holds(question)))

    return SymbolicTensor(_each((left, right), one), torch.bool, tensors[0].device)


# Choices and tables


def _outcome_chosen(function: Any, condition: Any, left: Any = None, right: Any = None) -> Any:
    """Handle ``where``: return ``left`` where ``condition`` is true, and ``right`` elsewhere, without reading outcomes.

    Returns ``Declined`` if the operands have no unread outcome, or have a symbolic number.
    """
    given = _as_tensors(condition, left, right)
    held = _elements(given)
    if not any(isinstance(element, Deferred) for element in held) or any_symbolic(held):
        return _NO_OUTCOME
    return SymbolicTensor(_each(given, _selected), result_type("", *given[1:]), condition.device)


def _selected(condition: Any, one: Any, other: Any) -> Any:
    if isinstance(condition, Deferred) and not condition.decided:
        return Choice(condition, (other, one))
    return one if known(condition) else other


def _outcome_filled(function: Any, tensor: Any, mask: Any, value: Any) -> Any:
    return _outcome_chosen(function, mask, torch.as_tensor(value, dtype=tensor.dtype), tensor)


def _taken(function: Any, table: Any, indices: Any, **_: Any) -> Any:
    """Return the elements of the plain ``table`` at ``indices``, without reading the index of the last dimension.

    ``indices`` has a tensor for each dimension; the last has unread outcomes among very many. Returns ``Declined`` for
    other arguments.
    """
    whole = len(indices) == getattr(table, "ndim", -1) and all(index is not None for index in indices)
    if isinstance(table, SymbolicTensor) or not whole or not _has_wide([indices[-1]]):
        return _NO_OUTCOME

    def one(*places: Any) -> Any:
        return _looked_up(table[tuple(int(known(place)) for place in places[:-1])], places[-1])

    return SymbolicTensor(_each(indices, one), table.dtype, table.device)


def _looked_up(row: torch.Tensor, place: Any) -> Any:
    if not _is_wide(place):
        return row[int(known(place))].item()
    return place.mapped(lambda values: row.detach().cpu()[torch.as_tensor(values)].numpy())


def _gathered(function: Any, table: Any, dim: int, index: Any, **_: Any) -> Any:
    if isinstance(table, SymbolicTensor) or dim not in (-1, table.ndim - 1) or not _has_wide([index]):
        return _NO_OUTCOME
    elements = elements_of(index)
    result = np.empty(elements.shape, dtype=object)
    for place in np.ndindex(elements.shape):
        result[place] = _looked_up(table[place[:-1]], elements[place])
    return SymbolicTensor(result, table.dtype, table.device)


def _index_selected(function: Any, table: Any, dim: int, index: Any) -> Any:
    return _gathered(function, table, -1, index) if getattr(table, "ndim", 0) == 1 else _NO_OUTCOME


_SHIFTS = ("bitwise_right_shift", "bitwise_left_shift")
_MAPS = with_rule(OF_TORCH, "outcome").keys() & names_of(OF_TORCH, Family.ARITHMETIC, Family.CLAMP) | {"div", *_SHIFTS}
OF_OUTCOMES: dict[str, Handler] = {
    **dict.fromkeys(_MAPS, _mapped),
    "rsub": lambda function, left, right, **more: _mapped(torch.sub, right, left, **more),
    "_to_copy": _outcome_converted,
    **dict.fromkeys(names_of(OF_TORCH, Family.COMPARISON), _asked),
    **dict.fromkeys(names_of(OF_TORCH, Family.CHOICE), _outcome_chosen),
    "masked_fill": _outcome_filled,
    "index": _taken,
    "gather": _gathered,
    "index_select": _index_selected,
}
"""Name in ``torch.ops.aten`` -> handler for outcome vectors."""


# At large


_TABLES = (OF_VECTORS, OF_OUTCOMES)
NAMES = frozenset(name for table in _TABLES for name in table)
"""Names in ``torch.ops.aten`` of the operations handled here."""


def rules_at_large(name: str) -> list[Handler]:
    """Return the large-vocabulary rules of the operation ``name``, each called with the operation and its arguments."""
    return [table[name] for table in _TABLES if name in table]
