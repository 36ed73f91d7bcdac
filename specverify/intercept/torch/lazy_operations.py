"""Comparisons, reductions and arithmetic of lazy tensors, element by element: what may stay undecided stays so."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from specverify.intercept import audit
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, holds, lazy_like
from specverify.intercept.unknowns.algebra import ALGEBRA, applied
from specverify.intercept.unknowns.continuous import Continuous
from specverify.intercept.unknowns.deferred import Chosen, Count, Deferred, Product, known
from specverify.intercept.unknowns.races import winner
from specverify.intercept.unknowns.uniform import NeedsValue
from specverify.laws import rounding

Handler = Callable[..., Any]


def _each(function: Callable[..., Any], *operands: Any) -> np.ndarray[Any, Any]:
    arrays = [elements_of(operand) for operand in operands]
    if not any(array.ndim for array in arrays):
        single = np.empty((), dtype=object)
        single[()] = function(*(array.item() for array in arrays))
        return single
    alike = np.broadcast_arrays(*arrays)
    result = np.empty(alike[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(array[index] for array in alike))
    return result


def _hang_on_draws(*operands: Any) -> bool:
    """Return whether there are numbers that torch itself computed for every outcome, and no uniform beside them."""
    return holds(Chosen, *operands) and not holds(Continuous, *operands)


def _template(*operands: Any) -> Any:
    return next(operand for operand in operands if isinstance(operand, LazyTensor))


def _number(element: Any) -> Any:
    """Return an element as ``algebra`` knows it: a random number as it is, another one looked at."""
    return element if isinstance(element, Continuous) else known(element)


# The algebra of random numbers


def arithmetic(name: str) -> Handler:
    """Return the handler of an operation of ``ALGEBRA`` that makes random numbers of random numbers."""

    def handler(*operands: Any, alpha: Any = 1, **more: Any) -> Any:
        if alpha != 1 or more.get("rounding_mode") is not None or not holds(Continuous, *operands):
            return NotImplemented
        found = _each(lambda *elements: applied(name, *map(_number, elements)), *operands)
        return lazy_like(_template(*operands), found, _result_type(*operands))

    return handler


def _result_type(*operands: Any) -> torch.dtype:
    empty = [torch.empty((0,) * each.ndim, dtype=each.dtype) if isinstance(each, torch.Tensor) else each
             for each in operands[:2]]  # fmt: skip
    dtype: torch.dtype = empty[0].dtype if len(empty) == 1 else torch.result_type(*empty)
    return dtype


def clamping(name: str) -> Handler:
    """Return the handler of an operation that gives a number a probability.

    In floats of 16 bits what is compared with that number is too often the same: there it is not answered.
    """

    def handler(tensor: Any, *bounds: Any, **named: Any) -> Any:
        operands = (tensor, *bounds)
        if name == "clip":
            low, high = named.get("min", (*bounds, None)[0]), named.get("max", (*bounds, None, None)[1])
            operands = tensor, -math.inf if low is None else low, math.inf if high is None else high
        halves = any(rounding.spacing(getattr(each, "dtype", None)) > rounding.FLOAT32 for each in operands)
        return NotImplemented if halves else arithmetic(name)(*operands)

    return handler


def chosen(condition: Any, left: Any = None, right: Any = None) -> Any:
    """Answer ``where`` of three; the condition is looked at."""
    if not holds(Continuous, left, right):
        return NotImplemented
    found = _each(lambda first, one, other: one if known(first) else other, condition, left, right)
    return lazy_like(_template(left, right), found, _result_type(left, right))


# Comparisons

_RELATIONS = {"less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
              "equal": operator.eq, "not_equal": operator.ne}  # fmt: skip

_SMALLER = {"less": (0, False), "less_equal": (0, True), "greater": (1, False), "greater_equal": (1, True)}
"""Which of the two is to be the smaller one, and whether they may be equal."""


def compared(name: str) -> Handler:
    """Return the handler of a comparison, by its name in ``ALGEBRA``: nobody knows the answer until it is looked at."""
    relation = _RELATIONS[name]

    def compare(place: str, left: Any, right: Any) -> Any:
        random = [isinstance(element, Continuous) for element in (left, right)]
        if all(random):
            return int(ALGEBRA[name](left, right))
        if any(random):
            return Deferred(lambda: int(ALGEBRA[name](_number(left), _number(right), place)))
        smaller, or_equal = _SMALLER.get(name, (0, False))
        small, large = (left, right)[:: -1 if smaller else 1]
        if name in _SMALLER and isinstance(small, Count) and not isinstance(large, Deferred):
            return Deferred(lambda: int(small.below(large + or_equal)))
        if isinstance(left, Deferred) or isinstance(right, Deferred):
            return Deferred(lambda: int(relation(known(left), known(right))))
        return int(relation(left, right))

    def handler(left: Any, right: Any) -> Any:
        if _hang_on_draws(left, right):
            return NotImplemented
        return lazy_like(_template(left, right), _each(partial(compare, audit.place()), left, right), torch.bool)

    return handler


def certain(name: str) -> Handler:
    """Return the handler of a question, by its name in ``ALGEBRA``, that has one answer for all random numbers."""

    def handler(tensor: Any) -> Any:
        if not holds(Continuous, tensor):
            return NotImplemented
        return lazy_like(tensor, _each(lambda element: int(applied(name, _number(element))), tensor), torch.bool)

    return handler


def negated(tensor: Any) -> Any:
    """Answer ``~`` of bools."""
    if tensor.dtype is not torch.bool:
        return NotImplemented
    return lazy_like(
        tensor, _each(lambda e: Deferred(lambda: int(not e.value())) if isinstance(e, Deferred) else int(not e), tensor)
    )


def both(left: Any, right: Any) -> Any:
    """Answer ``&`` of bools, the second not looked at where the first is False."""
    template = _template(left, right)
    return (
        NotImplemented
        if template.dtype is not torch.bool
        else lazy_like(template, _each(lambda a, b: Product((a, b)), left, right))
    )


# Reductions that look no further than they must.


def running(kind: type[Count | Product]) -> Handler:
    """Return the handler of ``cumsum`` or ``cumprod`` of outcomes."""

    def handler(tensor: Any, dim: int, **_: Any) -> Any:
        if holds(Continuous, tensor):
            raise NeedsValue("random numbers are added up or multiplied")
        if _hang_on_draws(tensor):
            return NotImplemented
        moved = np.moveaxis(tensor.elements, dim, -1)
        result = np.empty(moved.shape, dtype=object)
        for index in np.ndindex(moved.shape):
            result[index] = kind(moved[index[:-1]][: index[-1] + 1])
        dtype = tensor.dtype if tensor.dtype.is_floating_point else torch.int64
        return lazy_like(tensor, np.moveaxis(result, -1, dim), dtype)

    return handler


def summed(tensor: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    """Answer ``sum`` of whole numbers, of all of them or along the last dimension."""
    if tensor.dtype.is_floating_point or dim not in (None, [], [-1], [tensor.ndim - 1]):
        return NotImplemented
    shape = () if dim in (None, []) else tuple(tensor.shape[:-1])
    result = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        result[index] = Count(tensor.elements[index].ravel())
    return lazy_like(tensor, result[..., None] if keepdim and shape else result, torch.int64)


# Races and look-ups


def extreme(*, largest: bool) -> Handler:
    """Return the handler of ``argmax`` or ``argmin``."""

    def handler(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim not in (None, -1, tensor.ndim - 1) or _hang_on_draws(tensor):
            return NotImplemented
        rows = tensor.elements.reshape(-1, tensor.elements.size if dim is None else tensor.shape[-1])
        found = [_winner(tensor, row, largest=largest) for row in rows]
        shape = () if dim is None else (*tensor.shape[:-1], *((1,) if keepdim else ()))
        return torch.tensor(found, dtype=torch.int64, device=tensor.device).reshape(shape)

    return handler


def _winner(tensor: Any, row: Any, *, largest: bool, first_of_ties: bool = True) -> int:
    if any(isinstance(element, Continuous) for element in row):
        return winner([_number(element) for element in row], largest=largest, first_of_ties=first_of_ties)
    if tensor.dtype is torch.bool:
        return next((index for index, element in enumerate(row) if bool(known(element)) == largest), 0)
    values = [known(element) for element in row]
    return values.index(max(values) if largest else min(values))


def extreme_with_value(*, largest: bool) -> Handler:
    """Return the handler of ``max`` or ``min`` along a dimension."""

    def handler(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None or not holds(Continuous, tensor):
            return NotImplemented
        places = extreme(largest=largest)(tensor, dim, keepdim)
        return NotImplemented if places is NotImplemented else (_without_value(tensor, places.shape), places)

    return handler


def best(tensor: Any, count: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Answer ``topk``: of random numbers the first one alone."""
    return _ordered(tensor, dim, count, largest=largest)


def ordered(tensor: Any, dim: Any = -1, descending: Any = False, **named: Any) -> Any:
    """Answer ``sort``: of random numbers the first one alone."""
    dim, descending = named.get("dim", dim), named.get("descending", descending)
    return _ordered(tensor, dim, None, largest=descending, stable=bool(named.get("stable")))


def order(tensor: Any, dim: int = -1, descending: bool = False, **named: Any) -> Any:
    """Answer ``argsort``: of random numbers the first one alone."""
    found = ordered(tensor, dim, descending, **named)
    return found if found is NotImplemented else found[1]


def _ordered(tensor: Any, dim: int, count: int | None, *, largest: bool, stable: bool = False) -> Any:
    if dim not in (-1, tensor.ndim - 1) or not tensor.ndim or not holds(Continuous, tensor):
        return NotImplemented
    shape = (*tensor.shape[:-1], tensor.shape[-1] if count is None else count)
    places = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape[:-1]):
        row = tensor.elements[index]
        places[index] = [
            _unknown("the order of random numbers behind the first one is needed") for _ in range(shape[-1])
        ]
        places[(*index, 0)] = Deferred(partial(_winner, tensor, row, largest=largest, first_of_ties=stable))
    return _without_value(tensor, shape), lazy_like(tensor, places, torch.int64)


def _without_value(tensor: Any, shape: Any) -> LazyTensor:
    elements = np.empty(tuple(shape), dtype=object)
    for index in np.ndindex(elements.shape):
        elements[index] = _unknown("the value of the largest of several random numbers is needed, not only which it is")
    return lazy_like(tensor, elements)


def _unknown(sentence: str) -> Deferred:
    def refuse() -> Any:
        raise NeedsValue(sentence)

    return Deferred(refuse)


def searched(bounds: Any, values: Any, **kwargs: Any) -> Any:
    """Answer ``searchsorted`` of random numbers in bounds that are known."""
    if isinstance(bounds, LazyTensor) or not isinstance(values, LazyTensor):
        return NotImplemented
    rows = bounds.reshape(-1, bounds.shape[-1]).tolist()
    flat = values.elements.reshape(len(rows), -1) if bounds.ndim > 1 else values.elements.reshape(1, -1)
    found = np.empty(flat.shape, dtype=object)
    for row, column in np.ndindex(flat.shape):
        element: Any = flat[row, column]
        if not isinstance(element, Continuous):
            return NotImplemented
        found[row, column] = Deferred(partial(element.interval_of, rows[row], audit.place()))
    return lazy_like(values, found.reshape(tuple(values.shape)), torch.int64)
