"""The table of torch operations on symbolic tensors, by name in ``torch.ops.aten``, with their handlers.

A handler passes the arguments of the torch operation, named as in its schema, to a rule of the table of primitives. The
results of sorting and reductions are drawn when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import empty, moveaxis
from specverify.intercept.refusals import Declined, is_declined
from specverify.intercept.symbolic import rows
from specverify.intercept.symbolic.continuous import SYMBOLIC
from specverify.intercept.symbolic.deferred import is_count
from specverify.intercept.symbolic.large import at_large_now
from specverify.intercept.symbolic.primitives import OF_TORCH, Family, Result, names_of
from specverify.intercept.symbolic.rows import Ask
from specverify.intercept.symbolic.together import MAXIMUM
from specverify.intercept.torch.elementwise import (
    COMPOSED,
    ONE_DRAW,
    Handler,
    arithmetic,
    choosing,
    clamping,
    comparing,
    element_test,
    hang_on_draws,
    of_bools,
    when_looked_at,
    whole_parts,
)
from specverify.intercept.torch.elementwise import NAMES as OF_WHOLE_NUMBERS
from specverify.intercept.torch.large_tensors import NAMES, rules_at_large
from specverify.intercept.torch.tensors import (
    HANDLERS,
    SymbolicTensor,
    arguments_of,
    at_large_first,
    bounds_and_values,
    elements_of,
    gives_pairs,
    holds,
    is_settled,
    lazy_like,
    look_at,
    on_alternatives,
)
from specverify.intercept.torch.views import converted, joined, moving, padding, same, scalar, shaped, taking

aten: Any = torch.ops.aten

# Rows

_FEW_BITS_OF_OUTCOMES = Declined("there is no rule for the largest of outcomes in floats")
_NO_ROW = Declined("there is no row of numbers to put in an order")


def _ask(name: str, dtype: torch.dtype | None = None) -> Ask:
    """Return the ``Ask`` of an outcome that is drawn later: the operation ``name`` and the current line, for a refusal.

    ``dtype`` is the dtype of the result of the operation.
    """
    computed = None if dtype is None or dtype.is_floating_point else _OF_NUMPY.get(dtype)
    return Ask(f"torch.{name}", caller(), computed)


_OF_NUMPY = {torch.int64: np.int64, torch.int32: np.int32, torch.int16: np.int16, torch.int8: np.int8,
             torch.uint8: np.uint8, torch.float32: np.float32, torch.float64: np.float64}  # fmt: skip


def _axes(tensor: Any, dim: Any) -> list[int] | None:
    """Return ``dim``, the argument of a reduction of ``tensor``, as a list; None stands for all dimensions."""
    return [dim] if isinstance(dim, int) else None if dim is None or not len(dim) else list(dim)


def reducing(name: str) -> Handler:
    """Return the handler (implementation for symbolic tensors) of ``name``, a sum, a product, ``any`` or ``all``."""
    row: Any = OF_TORCH[name]

    def handler(tensor: Any, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
        tensor = _summand(tensor, row, dtype)
        if is_declined(tensor):
            return tensor
        kind = torch.bool if row.result is Result.BOOLS else _total_of(tensor.dtype, dtype)
        rule = partial(row.scalar, ask=_ask(name, kind))
        return lazy_like(tensor, rows.reduced(rule, tensor.elements, _axes(tensor, dim), keepdims=keepdim), kind)

    return handler


def scanning(name: str) -> Handler:
    """Return the handler of ``name``, a cumulative sum, product, maximum or minimum, for symbolic tensors."""
    row: Any = OF_TORCH[name]
    pairs = gives_pairs(getattr(aten, name))

    def handler(tensor: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
        if hang_on_draws(tensor) or (pairs and not holds(SYMBOLIC, tensor)):
            return ONE_DRAW
        tensor = tensor if pairs else _summand(tensor, row, dtype)
        if is_declined(tensor):
            return tensor
        kind = tensor.dtype if pairs else _total_of(tensor.dtype, dtype)
        rule = partial(row.scalar, ask=_ask(name, kind))
        values = lazy_like(tensor, rows.scanned(rule, tensor.elements, dim), kind)
        if not pairs:
            return values
        rule = partial(_place_of(row), ask=_ask(name))
        return values, lazy_like(tensor, rows.scanned(rule, tensor.elements, dim), torch.int64)

    return handler


def _summand(tensor: Any, row: Any, dtype: torch.dtype | None) -> Any:
    """Return ``tensor``, the operand of a reduction such as a sum, in the dtype in which its elements are reduced.

    ``dtype`` is this dtype (None: that of ``tensor``), ``row`` the reduction in the table of primitives. Returns
    ``Declined``:

    * if a reduction of bools gets another dtype;
    * if the elements cannot be converted unread;
    * for floats that are neither symbolic numbers nor counts.
    """
    if row.result is Result.BOOLS:
        return tensor if tensor.dtype is torch.bool else Declined("an operation on bools is given other numbers")
    tensor = tensor if dtype is None else converted(tensor, dtype=dtype)
    if is_declined(tensor) or not tensor.dtype.is_floating_point or holds(SYMBOLIC, tensor):
        return tensor
    return tensor if all(map(is_count, tensor.elements.flat)) else rows.NO_RULE_OF_FLOATS


def _total_of(dtype: torch.dtype, wanted: torch.dtype | None) -> torch.dtype:
    return dtype if wanted is not None or dtype.is_floating_point else torch.int64


def extremes(name: str) -> Handler:
    """Return the handler of ``name``, a maximum or minimum that returns elements, their indices, or both.

    A handler is the implementation for symbolic tensors.
    """
    row: Any = OF_TORCH[name]
    of_places, pairs = row.result is Result.PLACES, gives_pairs(getattr(aten, name))

    def handler(tensor: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if hang_on_draws(tensor) or (not tensor.ndim and dim is not None):
            return ONE_DRAW
        if not of_places and not holds(SYMBOLIC, tensor) and tensor.dtype.is_floating_point:
            return _FEW_BITS_OF_OUTCOMES

        def made(rule: Any, dtype: torch.dtype) -> Any:
            asked = partial(rule, ask=_ask(name))
            elements = rows.reduced(asked, tensor.elements, _axes(tensor, dim), keepdims=keepdim)
            return lazy_like(tensor, elements, dtype)

        values = made(row.scalar, torch.int64 if of_places else tensor.dtype)
        return (values, made(_place_of(row), torch.int64)) if pairs and dim is not None else values

    return handler


def _place_of(row: Any) -> Any:
    """Return the rule for argmax or argmin; ``row`` is the row of the table of primitives for max or min."""
    return partial(rows.place_of_extreme, **row.scalar.keywords)


def order_alone(name: str) -> Handler:
    """Return the handler of ``name``, such as a softmax, whose results have no values: only their order can be used.

    The handler applies to symbolic numbers; it returns ``Declined`` for a tensor without any.
    """
    rule: Any = OF_TORCH[name].scalar

    def handler(tensor: Any, dim: int, half_to_float: bool = False) -> Any:
        if not holds(SYMBOLIC, tensor):
            return Declined("there is no rule for a softmax of outcomes")
        return lazy_like(tensor, rows.along(lambda row: [rule(row)], tensor.elements, dim)[0])

    return handler


def joining(name: str) -> Handler:
    """Return the handler (implementation for symbolic tensors) of ``name``, which concatenates or stacks tensors."""
    join: Any = OF_TORCH[name].scalar
    return joined(join)


# Orders and lookups


def ordering(name: str) -> Handler:
    """Return the handler of ``name``, a sort or ``topk`` (a selection by rank), for symbolic tensors."""
    rule: Any = OF_TORCH[name].scalar
    packet = getattr(aten, name)
    pairs = gives_pairs(packet)

    def handler(*args: Any, **more: Any) -> Any:
        given = arguments_of(packet, *args, **more)
        tensor = given["self"]
        elements, dim = tensor.elements, given.get("dim")
        if "dim" not in given:
            elements = elements.reshape(-1)
        if not elements.ndim or not elements.size:
            return _NO_ROW
        if not holds((*SYMBOLIC, rows.Ordered), tensor):
            return Declined("there is no rule for an order of outcomes")
        downwards = given["largest"] is not False if "largest" in given else bool(given.get("descending"))
        stable = bool(given.get("stable"))
        one = partial(rule, ask=_ask(name), argument=given.get("k"), largest=downwards, stable=stable)
        results = rows.along(one, elements, -1 if dim is None else dim)
        if "dim" not in given or ("keepdim" in given and not given["keepdim"]):
            results = [moveaxis(result, -1 if dim is None else dim, -1)[..., 0] for result in results]
        values, places = (lazy_like(tensor, result, dtype)
                          for result, dtype in zip(results, (tensor.dtype, torch.int64), strict=True))  # fmt: skip
        return (values, places) if pairs and "dim" in given else places if "dim" in given else values

    return handler


def looking_up(name: str) -> Handler:
    """Return the handler (implementation for symbolic tensors) of ``name``, ``searchsorted`` or ``bucketize``.

    The operation looks up symbolic values among plain boundaries.
    """
    rule: Any = OF_TORCH[name].scalar
    packet = getattr(aten, name)

    def handler(*args: Any, **more: Any) -> Any:
        given = arguments_of(packet, *args, **more)
        bounds, values = bounds_and_values(packet, *args, **more)
        if (
            not isinstance(values, SymbolicTensor)
            or not is_settled(bounds, shares=False)
            or given.get("sorter") is not None
        ):
            return Declined("there is no rule for random bounds, or for a sorter")
        if not all(isinstance(element, SYMBOLIC) for element in values.elements.flat):
            return Declined("there is no rule for an outcome among bounds")
        right, ask = bool(given["right"]) or given.get("side") == "right", _ask(name)
        sorted_rows = bounds.reshape(-1, bounds.shape[-1]).tolist()
        flat = values.elements.reshape(len(sorted_rows) if bounds.ndim > 1 else 1, -1)
        found = [
            [rule(row, element, ask, right=right) for element in elements]
            for row, elements in zip(sorted_rows, flat, strict=True)
        ]
        result = empty(flat.shape, dtype=object)
        result[...] = found
        return lazy_like(values, result.reshape(tuple(values.shape)), torch.int64)

    return handler


def accumulating(name: str) -> Handler:
    """Return the handler of ``name``, ``scatter_add`` or ``index_add``, for random numbers of 32 bits or more."""
    row: Any = OF_TORCH[name]
    packet = getattr(aten, name)

    def handler(*args: Any, **more: Any) -> Any:
        given = arguments_of(packet, *args, **more)
        tensor, index, dim, alpha = given["self"], given["index"], given["dim"], given.get("alpha")
        source = given["src"] if "src" in given else given["source"]
        if not holds(SYMBOLIC, tensor, source) or holds(SYMBOLIC, index) or at_large_now():
            return Declined("there is no rule for outcomes that are added at some places, or for many numbers")
        if not tensor.dtype.is_floating_point or tensor.dtype.itemsize < rows.NARROWEST:
            return Declined("random numbers are added at some places in integers, or in 16 bits")
        index, where = look_at(index), torch.arange(tensor.numel()).reshape(tensor.shape)
        added = elements_of(source if alpha is None or alpha == 1 else source * alpha)
        if "src" in given:
            where, added = where.gather(dim, index), added[tuple(map(slice, index.shape))]
        else:
            where = where.index_select(dim, index)
        ask = _ask(name)._replace(dtype=_OF_NUMPY[tensor.dtype])
        rule = partial(row.scalar, ask=ask)
        template = tensor if isinstance(tensor, SymbolicTensor) else source
        return lazy_like(template, rows.accumulated(rule, elements_of(tensor), added, where.numpy()), tensor.dtype)

    return handler


# The table

_FAMILIES = {
    Family.ARITHMETIC: arithmetic,
    Family.CLAMP: clamping,
    Family.WHOLE_PART: whole_parts,
    Family.COMPARISON: comparing,
    Family.QUESTION: element_test,
    Family.CHOICE: choosing,
    Family.LOGIC: of_bools,
}
"""Family -> adapter of torch arguments, called with the name of a primitive."""
_OF_ROWS: dict[Family, Any] = {
    Family.REDUCTION: reducing,
    Family.EXTREME: extremes,
    Family.SCAN: scanning,
    Family.ORDER_ALONE: order_alone,
    Family.ORDERING: ordering,
    Family.LOOKUP: looking_up,
    Family.VIEW: lambda name: taking(getattr(aten, name), view=True),
    Family.SELECTION: lambda name: taking(getattr(aten, name), view=False),
    Family.INSERTION: lambda name: moving(getattr(aten, name)),
    Family.PADDING: lambda name: padding(getattr(aten, name)),
    Family.ACCUMULATION: accumulating,
    Family.JOINING: joining,
    Family.COPY: lambda name: same,
    Family.SHAPE: lambda name: shaped(getattr(aten, name)),
}
"""Family -> adapter of torch arguments, called with the name of a torch operation, whose schema lists the arguments."""
_where: Any = choosing(*names_of(OF_TORCH, Family.CHOICE))
_OTHERS: dict[str, Callable[..., Any]] = {
    "_to_copy": converted,
    "_local_scalar_dense": scalar,
    "rsub": lambda left, right, **more: arithmetic("subtract")(right, left, **more),
    "masked_fill": lambda tensor, mask, value: _where(mask, value, tensor),
    "relu": lambda tensor: clamping(MAXIMUM)(tensor, 0.0),
}
_CARRIED = {Family.ARITHMETIC, Family.CLAMP, Family.COMPARISON, Family.CHOICE, Family.REDUCTION, Family.EXTREME,
            Family.SCAN, Family.ORDER_ALONE, Family.SELECTION}  # fmt: skip
"""Families of operations between logits and a decision; they can be computed for every outcome: see ``tensors``."""
_FOR_EACH_OUTCOME = ("_to_copy", "rsub",
                     *(name for name, row in OF_TORCH.items() if row.family in _CARRIED))  # fmt: skip


def _table() -> dict[Any, Callable[..., Any]]:
    result = {
        **{name: _FAMILIES[row.family](row.name) for name, row in OF_TORCH.items() if row.family in _FAMILIES},
        **{name: _OF_ROWS[row.family](name) for name, row in OF_TORCH.items() if row.family in _OF_ROWS},
        **_OTHERS,
        **COMPOSED,
    }
    result |= {name: on_alternatives(getattr(aten, name), result.get(name)) for name in _FOR_EACH_OUTCOME}
    result |= {name: when_looked_at(name, getattr(aten, name), result[name]) for name in OF_WHOLE_NUMBERS}
    result |= {
        name: at_large_first(rules_at_large(name), name, getattr(aten, name), result.get(name)) for name in NAMES
    }
    return {getattr(aten, name): handler for name, handler in result.items()}


HANDLERS.update(_table())
