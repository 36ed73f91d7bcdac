"""Comparisons, reductions and arithmetic of lazy tensors: importing this module teaches ``LazyTensor`` about them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from specverify.intercept import (
    audit,
    deferred,
    lazy_views,  # noqa: F401 - views are the first that it learns
)
from specverify.intercept.alternatives import ON_ALTERNATIVES, on_alternatives
from specverify.intercept.deferred import Chosen, Continuous, Count, Deferred, NeedsValue, Product, known
from specverify.intercept.lazy_tensor import HANDLERS, LazyTensor, elements_of, holds, lazy_like
from specverify.intercept.races import race

aten: Any = torch.ops.aten


def _each(function: Callable[..., Any], *operands: Any) -> np.ndarray[Any, Any]:
    arrays = np.broadcast_arrays(*(elements_of(operand) for operand in operands))
    result = np.empty(arrays[0].shape, dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = function(*(array[index] for array in arrays))
    return result


def _hang_on_draws(*operands: Any) -> bool:
    """Return whether there are numbers that torch itself computed for every outcome, and no uniform beside them."""
    return holds(Chosen, *operands) and not holds(Continuous, *operands)


def _template(*operands: Any) -> Any:
    return next(operand for operand in operands if isinstance(operand, LazyTensor))


# Comparisons.


def _compared(less: bool, boundary: bool) -> Callable[..., Any]:
    """``left < right`` for ``less``, else ``left > right``; ``boundary`` includes equality, which no uniform meets."""

    def compare(place: str, left: Any, right: Any) -> Any:
        small, large = (left, right) if less else (right, left)
        if isinstance(left, Continuous) and isinstance(right, Continuous):
            raise NeedsValue("two random numbers are compared with each other")
        if isinstance(small, Continuous):
            return Deferred(lambda: int(small.below(float(known(large)), place)))
        if isinstance(large, Continuous):
            return Deferred(lambda: int(_above(large, float(known(small)), place)))
        if isinstance(small, Count) and not isinstance(large, Deferred):
            return Deferred(lambda: int(small.below(large + boundary)))
        relation = operator.le if boundary else operator.lt
        if isinstance(small, Deferred) or isinstance(large, Deferred):
            return Deferred(lambda: int(relation(known(small), known(large))))
        return int(relation(small, large))

    def handler(left: Any, right: Any) -> Any:
        if _hang_on_draws(left, right):
            return NotImplemented
        return lazy_like(_template(left, right), _each(partial(compare, audit.place()), left, right), torch.bool)

    return handler


def _above(value: Continuous, bound: float, place: str) -> bool:
    """Return whether the value is above ``bound``; never above NaN."""
    return not math.isnan(bound) and not value.below(bound, place)


def _equal(different: bool) -> Callable[..., Any]:
    def compare(left: Any, right: Any) -> Any:
        if isinstance(left, Continuous) or isinstance(right, Continuous):
            raise NeedsValue("a uniform random number is tested for equality")
        if isinstance(left, Deferred) or isinstance(right, Deferred):
            return Deferred(lambda: int((known(left) == known(right)) != different))
        return int((left == right) != different)

    def handler(left: Any, right: Any) -> Any:
        if _hang_on_draws(left, right):
            return NotImplemented
        return lazy_like(_template(left, right), _each(compare, left, right), torch.bool)

    return handler


def _negated(tensor: Any) -> Any:
    if tensor.dtype is not torch.bool:
        return NotImplemented
    return lazy_like(
        tensor, _each(lambda e: Deferred(lambda: int(not e.value())) if isinstance(e, Deferred) else int(not e), tensor)
    )


def _both(left: Any, right: Any) -> Any:
    template = _template(left, right)
    return (
        NotImplemented
        if template.dtype is not torch.bool
        else lazy_like(template, _each(lambda a, b: Product((a, b)), left, right))
    )


# Reductions that look no further than they must.


def _running(kind: type[Count | Product]) -> Callable[..., Any]:
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


def _sum(tensor: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    if tensor.dtype.is_floating_point or dim not in (None, [], [-1], [tensor.ndim - 1]):
        return NotImplemented
    shape = () if dim in (None, []) else tuple(tensor.shape[:-1])
    result = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        result[index] = Count(tensor.elements[index].ravel())
    return lazy_like(tensor, result[..., None] if keepdim and shape else result, torch.int64)


def _extreme(largest: bool) -> Callable[..., Any]:
    def handler(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim not in (None, -1, tensor.ndim - 1) or _hang_on_draws(tensor):
            return NotImplemented
        rows = tensor.elements.reshape(-1, tensor.elements.size if dim is None else tensor.shape[-1])
        found = [_winner(tensor, row, largest) for row in rows]
        shape = () if dim is None else (*tensor.shape[:-1], *((1,) if keepdim else ()))
        return torch.tensor(found, dtype=torch.int64, device=tensor.device).reshape(shape)

    return handler


def _winner(tensor: Any, row: Any, largest: bool) -> int:
    clock = next((element for element in row if isinstance(element, Continuous)), None)
    if clock is None:
        if tensor.dtype is torch.bool:
            return next((index for index, element in enumerate(row) if bool(known(element)) == largest), 0)
        values = [known(element) for element in row]
        return values.index(max(values) if largest else min(values))
    uniform = clock.uniform
    entries = row if largest else [_reciprocal(element) for element in row]
    return race(uniform.draws, ("race", *uniform.known.site), entries)


def _reciprocal(element: Any) -> Any:
    """``argmin E / w`` is ``argmax w / E``."""
    if not isinstance(element, Continuous):
        return 0.0 if element == np.inf else element
    names = [step.name for step in element.steps]
    if names[:2] != ["log", "negate"] or any(name != "times" for name in names[2:]):
        return element
    scale = float(np.prod([step.number for step in element.steps[2:]]))
    clock = Continuous(element.uniform, element.steps[:2])
    return clock.then(deferred.divided_into_step(1.0 / scale))


def _searched(bounds: Any, values: Any, **kwargs: Any) -> Any:
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


# Arithmetic on continuous elements: monotone operations only.


def _mapped(step: Callable[[], deferred.Step]) -> Callable[..., Any]:
    def handler(tensor: Any) -> Any:
        if not holds(Continuous, tensor):
            return NotImplemented
        made = step()
        return lazy_like(tensor, _each(lambda e: e.then(made) if isinstance(e, Continuous) else e, tensor))

    return handler


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def handler(left: Any, right: Any, alpha: Any = 1, **_: Any) -> Any:
        if alpha != 1 or not holds(Continuous, left, right):
            return NotImplemented
        return lazy_like(_template(left, right), _each(operation, left, right))

    return handler


def _add(left: Any, right: Any) -> Any:
    value, other = (left, right) if isinstance(left, Continuous) else (right, left)
    if isinstance(other, Continuous):
        raise NeedsValue("two random numbers are added")
    return (
        value.then(deferred.plus_step(float(known(other))))
        if isinstance(value, Continuous)
        else known(value) + known(other)
    )


def _subtract(left: Any, right: Any) -> Any:
    return _add(left, right.then(deferred.negate_step()) if isinstance(right, Continuous) else -known(right))


def _multiply(left: Any, right: Any) -> Any:
    value, other = (left, right) if isinstance(left, Continuous) else (right, left)
    if isinstance(other, Continuous):
        raise NeedsValue("two random numbers are multiplied")
    number = known(other)
    if not isinstance(value, Continuous):
        return known(value) * number
    signed = value.then(deferred.negate_step()) if number < 0 else value
    return signed.then(deferred.times_step(float(abs(number))))


def _divide(left: Any, right: Any) -> Any:
    if isinstance(right, Continuous):
        if isinstance(left, Continuous):
            raise NeedsValue("a random number is divided by another")
        return right.then(deferred.divided_into_step(float(known(left))))
    return _multiply(left, 1.0 / known(right) if known(right) else np.inf)


HANDLERS.update(
    {
        aten.lt: _compared(less=True, boundary=False),
        aten.le: _compared(less=True, boundary=True),
        aten.gt: _compared(less=False, boundary=False),
        aten.ge: _compared(less=False, boundary=True),
        aten.eq: _equal(different=False),
        aten.ne: _equal(different=True),
        aten.bitwise_not: _negated,
        aten.logical_not: _negated,
        aten.bitwise_and: _both,
        aten.logical_and: _both,
        aten.cumsum: _running(Count),
        aten.cumprod: _running(Product),
        aten.sum: _sum,
        aten.argmax: _extreme(largest=True),
        aten.argmin: _extreme(largest=False),
        aten.searchsorted: _searched,
        aten.log: _mapped(deferred.log_step),
        aten.exp: _mapped(deferred.exp_step),
        aten.neg: _mapped(deferred.negate_step),
        aten.add: _arithmetic(_add),
        aten.sub: _arithmetic(_subtract),
        aten.rsub: _arithmetic(lambda left, right: _subtract(right, left)),
        aten.mul: _arithmetic(_multiply),
        aten.div: _arithmetic(_divide),
    }
)
HANDLERS.update({function: on_alternatives(function, HANDLERS.get(function)) for function in ON_ALTERNATIVES})
