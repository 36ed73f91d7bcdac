"""Comparisons, reductions and arithmetic of lazy tensors, element by element: what may stay undecided stays so."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from numpy import broadcast_arrays, empty, expand_dims, moveaxis  # by name: inside a block NumPy has others

from specverify.intercept import audit
from specverify.intercept.refusals import Declined, is_declined
from specverify.intercept.torch.alternatives import only_source
from specverify.intercept.torch.dtypes import in_one_dtype, result_type, rounds_at_the_end
from specverify.intercept.torch.lazy_tensor import LazyTensor, elements_of, holds, lazy_like
from specverify.intercept.torch.lazy_views import converted, whole_part
from specverify.intercept.unknowns.algebra import narrowed
from specverify.intercept.unknowns.comparisons import answered
from specverify.intercept.unknowns.deferred import Choice, Chosen, Count, Deferred, Product, is_open, known, single
from specverify.intercept.unknowns.elementwise import applied
from specverify.intercept.unknowns.joined import UNKNOWN
from specverify.laws import rounding

Handler = Callable[..., Any]
ONE_DRAW = Declined("all elements hang on one draw: the operation is computed for each of its outcomes")
_CLAMPED_HALVES = Declined("random numbers of 16 bits are clamped: too many of them equal the bound")
_NO_BOOLS = Declined("an operation on bools is given other numbers")


def each(function: Callable[..., Any], *operands: Any) -> np.ndarray[Any, Any]:
    """Return what a function gives of the elements of operands, broadcast."""
    arrays = [elements_of(operand) for operand in operands]
    if not any(array.ndim for array in arrays):
        return single(function(*(array.item() for array in arrays)))
    alike = arrays if len({array.shape for array in arrays}) == 1 else broadcast_arrays(*arrays)
    result = empty(alike[0].shape, dtype=object)
    flat = result.reshape(-1)  # the same memory
    for place, elements in enumerate(zip(*(array.flat for array in alike), strict=True)):
        flat[place] = function(*elements)
    return result


def hang_on_draws(*operands: Any) -> bool:
    """Return whether there are numbers that torch itself computed for every outcome, and no uniform beside them."""
    return holds(Chosen, *operands) and not holds(UNKNOWN, *operands)


def template(*operands: Any) -> Any:
    """Return the first lazy tensor."""
    return next(operand for operand in operands if isinstance(operand, LazyTensor))


def number(element: Any) -> Any:
    """Return an element as ``algebra`` knows it: a random number as it is, another one looked at."""
    return element if isinstance(element, UNKNOWN) else known(element)


# The algebra of random numbers


def arithmetic(name: str) -> Handler:
    """Return the handler of an operation of ``ALGEBRA`` that makes random numbers of random numbers."""

    def handler(*operands: Any, alpha: Any = 1, rounding_mode: str | None = None, **more: Any) -> Any:
        if not holds(UNKNOWN, *operands) or (alpha != 1 and name not in {"add", "subtract"}):
            return Declined(f"there is no rule for {name} of outcomes, or for its factor alpha")
        if rounding_mode is not None:
            return whole_parts(rounding_mode)(arithmetic(name)(*operands))
        if alpha != 1:
            operands = operands[0], operands[1] * alpha
        if len(operands) == 2 and not rounds_at_the_end(name):
            operands = in_one_dtype(*operands)
        dtype = result_type(name, *operands)
        kind = str(dtype).removeprefix("torch.")
        found = each(lambda *elements: narrowed(applied(name, *map(number, elements)), kind), *operands)
        return lazy_like(template(*operands), found, dtype)

    return handler


def clamping(name: str) -> Handler:
    """Return the handler of an operation that gives a number a probability.

    In floats of 16 bits what is compared with that number is too often the same: there it is not answered.
    """

    def handler(tensor: Any, *bounds: Any, **named: Any) -> Any:
        operands = (tensor, *bounds)
        if name == "clip":
            low, high = named.get("min", (*bounds, None)[0]), named.get("max", (*bounds, None, None)[1])
            operands = tensor, -math.inf if low is None else low, math.inf if high is None else high
        halves = any(rounding.is_of_16_bits(getattr(each, "dtype", None)) for each in operands)
        return _CLAMPED_HALVES if halves else arithmetic(name)(*operands)

    return handler


def whole_parts(name: str) -> Handler:
    """Return the handler of a whole part, or of a sign: drawn when it is looked at."""

    def handler(tensor: Any, *operands: Any, **more: Any) -> Any:
        if not holds(UNKNOWN, tensor) or more.get("decimals"):
            return Declined(f"there is no rule for {name} of outcomes, or to so many decimals")
        if name in {"sign", "heaviside"}:
            found = each(lambda *elements: Deferred(lambda: applied(name, *map(number, elements))), tensor, *operands)
            return lazy_like(tensor, found)
        return lazy_like(
            tensor, each(lambda e: whole_part(e, name) if isinstance(e, UNKNOWN) else applied(name, known(e)), tensor)
        )

    return handler


def chosen(condition: Any, left: Any = None, right: Any = None) -> Any:
    """Answer ``where`` of three; the condition is looked at where it chooses a random number, else nothing is."""
    if left is None or hang_on_draws(condition, left, right):
        return ONE_DRAW
    dtype = result_type("where", left, right)
    if holds(UNKNOWN, left, right):
        found = each(lambda first, one, other: one if known(first) else other, condition, left, right)
    elif only_source((condition, left, right)) is not None:
        return ONE_DRAW
    else:
        found = each(_choice, condition, left, right)
    return lazy_like(template(condition, left, right), found, dtype)


def _choice(condition: Any, left: Any, right: Any) -> Any:
    if not is_open(condition):
        return left if known(condition) else right
    return Choice(condition, left, right)


# Comparisons

_RELATIONS = {"less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
              "equal": operator.eq, "not_equal": operator.ne}  # fmt: skip

_SMALLER = {"less": (0, False), "less_equal": (0, True), "greater": (1, False), "greater_equal": (1, True)}
"""Which of the two is to be the smaller one, and whether they may be equal."""


def compared(name: str) -> Handler:
    """Return the handler of a comparison, by its name in ``YES_OR_NO``: it is answered when it is looked at."""
    relation = _RELATIONS[name]

    def compare(place: str, left: Any, right: Any) -> Any:
        if isinstance(left, UNKNOWN) or isinstance(right, UNKNOWN):
            return Deferred(lambda: int(answered(name, number(left), number(right), place=place)))
        smaller, or_equal = _SMALLER.get(name, (0, False))
        small, large = (left, right)[:: -1 if smaller else 1]
        if name in _SMALLER and isinstance(small, Count) and not isinstance(large, Deferred):
            return Deferred(lambda: int(small.below(large + or_equal)))
        if isinstance(left, Deferred) or isinstance(right, Deferred):
            return Deferred(lambda: int(relation(known(left), known(right))))
        return int(relation(left, right))

    def handler(left: Any, right: Any) -> Any:
        if hang_on_draws(left, right) and only_source((left, right)) is not None:
            return ONE_DRAW
        left, right = in_one_dtype(left, right)
        return lazy_like(template(left, right), each(partial(compare, audit.place()), left, right), torch.bool)

    return handler


def asked(name: str) -> Handler:
    """Return the handler of a question, by its name in ``YES_OR_NO``, to one number."""

    def ask(place: str, element: Any) -> Any:
        return Deferred(lambda: int(answered(name, number(element), place=place)))

    def handler(tensor: Any) -> Any:
        if not holds(UNKNOWN, tensor):
            return Declined(f"there is no rule for {name} of outcomes")
        return lazy_like(tensor, each(partial(ask, audit.place()), tensor), torch.bool)

    return handler


def negated(tensor: Any) -> Any:
    """Answer ``~`` of bools."""
    if tensor.dtype is not torch.bool:
        return _NO_BOOLS
    return lazy_like(
        tensor, each(lambda e: Deferred(lambda: int(not e.value())) if isinstance(e, Deferred) else int(not e), tensor)
    )


def both(left: Any, right: Any) -> Any:
    """Answer ``&`` of bools, the second not looked at where the first is False."""
    if not _bools(left, right):
        return _NO_BOOLS
    return lazy_like(template(left, right), each(lambda a, b: Product((a, b)), left, right))


def either(left: Any, right: Any) -> Any:
    """Answer ``|`` of bools, the second not looked at where the first is True."""
    if not _bools(left, right):
        return _NO_BOOLS
    found = each(lambda a, b: Deferred(lambda: int(bool(known(a)) or bool(known(b)))), left, right)
    return lazy_like(template(left, right), found)


def _bools(*operands: Any) -> bool:
    return all(getattr(operand, "dtype", torch.bool) is torch.bool for operand in operands)


# Reductions that look no further than they must.


def folded(kind: type[Count | Product], elements: Any) -> Any:
    """Return the sum or the product of elements, random numbers among them, one after the other."""
    name = "add" if kind is Count else "multiply"
    return reduce(partial(applied, name), map(number, elements))


def running(kind: type[Count | Product]) -> Handler:
    """Return the handler of ``cumsum`` or ``cumprod`` of outcomes."""

    def handler(tensor: Any, dim: int, dtype: torch.dtype | None = None) -> Any:
        make = partial(folded, kind) if holds(UNKNOWN, tensor) else kind
        tensor = converted(tensor, dtype=dtype) if holds(UNKNOWN, tensor) else tensor
        if hang_on_draws(tensor):
            return ONE_DRAW
        moved = tensor.elements if tensor.ndim == 1 else moveaxis(tensor.elements, dim, -1)
        result = empty(moved.shape, dtype=object)
        for index in np.ndindex(moved.shape):
            result[index] = make(moved[index[:-1]][: index[-1] + 1])
        dtype = tensor.dtype if tensor.dtype.is_floating_point else torch.int64
        return lazy_like(tensor, result if tensor.ndim == 1 else moveaxis(result, -1, dim), dtype)

    return handler


def summed(tensor: Any, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    """Answer ``sum`` of whole numbers or of random ones, of all of them or along one dimension."""
    if holds(UNKNOWN, tensor):
        tensor = converted(tensor, dtype=dtype)
        return reduced(tensor, dim, keepdim, partial(folded, Count), tensor.dtype)
    if tensor.dtype.is_floating_point:
        return Declined("there is no rule for a sum of outcomes in floats")
    return reduced(tensor, dim, keepdim, Count, torch.int64)


def multiplied(tensor: Any, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    """Answer ``prod`` of random numbers, of all of them or along one dimension."""
    if not holds(UNKNOWN, tensor):
        return Declined("there is no rule for a product of outcomes")
    tensor = converted(tensor, dtype=dtype)
    return reduced(tensor, dim, keepdim, partial(folded, Product), tensor.dtype)


def averaged(tensor: Any, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    """Answer ``mean`` of random numbers, of all of them or along one dimension."""
    if not holds(UNKNOWN, tensor):
        return Declined("there is no rule for a mean of outcomes")
    total: Any = summed(tensor, dim, keepdim, dtype)
    return total if is_declined(total) else arithmetic("divide")(total, tensor.numel() / total.numel())


def all_of(tensor: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Answer ``all`` of bools, looked at up to the first False."""
    return reduced(tensor, dim, keepdim, Product, torch.bool) if tensor.dtype is torch.bool else _NO_BOOLS


def any_of(tensor: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Answer ``any`` of bools, looked at up to the first True."""

    def some(elements: Any) -> Deferred:
        return Deferred(lambda: int(any(bool(known(element)) for element in elements)))

    return reduced(tensor, dim, keepdim, some, torch.bool) if tensor.dtype is torch.bool else _NO_BOOLS


def reduced(tensor: Any, dim: Any, keepdim: bool, make: Callable[[Any], Any], dtype: torch.dtype) -> Any:
    """Return what ``make`` gives of the elements along one dimension, or of all."""
    dims = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if len(dims) > 1:
        return Declined("there is no rule for a reduction over several dimensions")
    rows = moveaxis(tensor.elements, dims[0], -1) if dims and tensor.ndim else tensor.elements.reshape(-1)
    result = empty(rows.shape[:-1], dtype=object)
    for index in np.ndindex(result.shape):
        result[index] = make(rows[index].ravel())
    if keepdim:
        result = expand_dims(result, dims[0]) if dims else result.reshape((1,) * tensor.ndim)
    return lazy_like(tensor, result, dtype)
