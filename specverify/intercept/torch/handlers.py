"""The table of torch operations on symbolic tensors, by name in ``torch.ops.aten``, and the handlers of rows.

Handlers of rows: largest element, order, position among numbers. The result is drawn when it is read; a race for a row
that is never read is not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from specverify.intercept.caller import caller
from specverify.intercept.cpython.patches import empty, moveaxis
from specverify.intercept.refusals import Declined, NeedsValue, is_declined
from specverify.intercept.symbolic.continuous import MOST_ORDERED, SYMBOLIC, Extreme, Joined, at_rank, largest_of
from specverify.intercept.symbolic.deferred import Count, Deferred, Drawn, Law, Product, known
from specverify.intercept.symbolic.primitives import OF_TORCH, Family
from specverify.intercept.symbolic.races import law_of_winner, ranked_from_either_end, winner
from specverify.intercept.torch.elementwise import (
    COMPOSED,
    ONE_DRAW,
    Handler,
    all_of,
    any_of,
    arithmetic,
    asked,
    averaged,
    both,
    chosen,
    clamping,
    compared,
    either,
    hang_on_draws,
    multiplied,
    negated,
    number,
    reduced,
    running,
    summed,
    when_looked_at,
    whole_parts,
)
from specverify.intercept.torch.elementwise import NAMES as OF_WHOLE_NUMBERS
from specverify.intercept.torch.large_tensors import NAMES, at_large_first
from specverify.intercept.torch.tensors import HANDLERS, SymbolicTensor, holds, is_settled, lazy_like, on_alternatives
from specverify.intercept.torch.views import converted, joined, moving, padded, same, scalar, shaped, taking

# Rows

Answer = TypeVar("Answer")
_NO_EXTREME = Declined("there is no rule for the extremes of outcomes")
_NO_ROW = Declined("there is no row of numbers to put in an order")


class Ordered(Deferred):
    """An entry of a row that was made of random numbers, all in one increasing way: of it the order is known."""

    def __init__(self, score: Any, row: object) -> None:
        """``row`` is the data shared by the entries of one row."""
        self.score, self.row = score, row
        super().__init__(_refusing("the value of a softmax of random numbers is needed, not only which is the largest"))


def ordered_as(tensor: Any, dim: int, half_to_float: bool = False) -> Any:
    """Answer ``softmax``, and its logarithm, of random numbers."""
    if not holds(SYMBOLIC, tensor):
        return Declined("there is no rule for a softmax of outcomes")
    rows = moveaxis(tensor.elements, dim, -1)
    result = empty(rows.shape, dtype=object)
    for index in np.ndindex(rows.shape[:-1]):
        row = object()
        for place, element in enumerate(rows[index]):
            result[(*index, place)] = Ordered(number(element), row)
    return lazy_like(tensor, moveaxis(result, -1, dim))


def extreme(*, largest: bool) -> Handler:
    """Return the handler of ``argmax`` or ``argmin``."""

    def handler(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if hang_on_draws(tensor) or (not tensor.ndim and dim is not None):
            return ONE_DRAW
        bools = tensor.dtype is torch.bool
        make = partial(_deferred_winner, largest=largest, place=caller(), bools=bools)
        return reduced(tensor, dim, keepdim, make, torch.int64)

    return handler


def _deferred_winner(row: Sequence[Any], *, largest: bool, place: str, bools: bool = False) -> Deferred:
    entries = list(row)
    asked = "torch.argmax" if largest else "torch.argmin"
    compute = partial(_placed, asked, place, partial(_winner, entries, largest=largest, place=place, bools=bools))
    return Drawn(
        compute, partial(_placed, asked, place, partial(_law_of_winner, entries, largest=largest, place=place))
    )


def _placed(operation: str, place: str, ask: Callable[[], Answer]) -> Answer:
    """Return an answer; a refusal names the operation and the line that asked, which is not the one that looks."""
    try:
        return ask()
    except NeedsValue as refused:
        raise refused.during(operation, place) from None


def _winner(row: Sequence[Any], *, largest: bool, place: str, bools: bool) -> int:
    row = _scores(row)
    if any(isinstance(element, SYMBOLIC) for element in row):
        return winner([number(element) for element in row], largest=largest, place=place)
    if bools:
        return next((index for index, element in enumerate(row) if bool(known(element)) == largest), 0)
    values = [known(element) for element in row]
    return values.index(max(values) if largest else min(values))


def _law_of_winner(row: Sequence[Any], *, largest: bool, place: str) -> Law | None:
    row = _scores(row)
    if not any(isinstance(element, SYMBOLIC) for element in row) or any(map(_is_outcome, row)):
        return None
    return law_of_winner(row, largest=largest, place=place)


def _is_outcome(element: Any) -> bool:
    return isinstance(element, Deferred)


def _scores(row: Sequence[Any]) -> Sequence[Any]:
    """Return the scores that determine the order of a row."""
    if not all(isinstance(element, Ordered) for element in row) or len({id(element.row) for element in row}) > 1:
        return row
    return [element.score for element in row]


def extreme_with_value(*, largest: bool) -> Handler:
    """Return the handler of ``max`` or ``min``: of all numbers, or along a dimension with the places."""

    def handler(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if holds(SYMBOLIC, tensor):
            values = largest_along(largest=largest)(tensor, dim, keepdim)
        elif tensor.dtype.is_floating_point or hang_on_draws(tensor):
            return Declined("there is no rule for the largest of outcomes in floats")
        else:
            bools = tensor.dtype is torch.bool
            make = partial(_deferred_value, largest=largest, bools=bools)
            values = reduced(tensor, dim, keepdim, make, tensor.dtype)
        return values if dim is None else (values, extreme(largest=largest)(tensor, dim, keepdim))

    return handler


def _deferred_value(row: Sequence[Any], *, largest: bool, bools: bool) -> Deferred:
    """Return the largest outcome of a row; of bools, no more are forced than needed."""
    take: Any = (any if largest else all) if bools else max if largest else min
    return Deferred(lambda: int(take(map(known, row))))


def largest_along(*, largest: bool) -> Handler:
    """Return the handler of ``amax`` or ``amin``."""

    def make(row: Sequence[Any]) -> Any:
        return largest_of(tuple(number(element) for element in row), largest=largest)

    def handler(tensor: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return reduced(tensor, dim, keepdim, make, tensor.dtype) if holds(SYMBOLIC, tensor) else _NO_EXTREME

    return handler


def both_extremes(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Answer ``aminmax``."""
    result = [largest_along(largest=largest)(tensor, dim, keepdim) for largest in (False, True)]
    return _NO_EXTREME if any(map(is_declined, result)) else tuple(result)


def running_extreme(*, largest: bool) -> Handler:
    """Return the handler of ``cummax`` or ``cummin``; the index of the extreme so far is drawn when it is read."""

    def handler(tensor: Any, dim: int) -> Any:
        if not holds(SYMBOLIC, tensor):
            return _NO_EXTREME
        rows, place = moveaxis(tensor.elements, dim, -1), caller()
        values, places = empty(rows.shape, dtype=object), empty(rows.shape, dtype=object)
        for index in np.ndindex(rows.shape):
            row = rows[index[:-1]][: index[-1] + 1]
            values[index] = largest_of(tuple(map(number, row)), largest=largest)
            places[index] = _deferred_winner(row, largest=largest, place=place)
        moved = (moveaxis(each, -1, dim) for each in (values, places))
        return lazy_like(tensor, next(moved)), lazy_like(tensor, next(moved), torch.int64)

    return handler


# Orders


def best(tensor: Any, count: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Answer ``topk``."""
    return _ordered(tensor, dim, range(count), largest=largest)


def ordered(tensor: Any, dim: Any = -1, descending: Any = False, **named: Any) -> Any:
    """Answer ``sort``."""
    dim, descending = named.get("dim", dim), named.get("descending", descending)
    if not tensor.ndim:
        return _NO_ROW
    places = range(tensor.shape[dim])
    return _ordered(tensor, dim, places, largest=descending, stable=bool(named.get("stable")))


def order(tensor: Any, dim: int = -1, descending: bool = False, **named: Any) -> Any:
    """Answer ``argsort``."""
    result = ordered(tensor, dim, descending, **named)
    return result if is_declined(result) else result[1]


def kth(tensor: Any, place: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Answer ``kthvalue``."""
    result = _ordered(tensor, dim, range(place - 1, place), largest=False)
    if is_declined(result):
        return result
    return result if keepdim else tuple(each.squeeze(dim) for each in result)


def median(tensor: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Answer ``median``: of all numbers, or along a dimension with the places; of two in the middle the smaller one."""
    row = lazy_like(tensor, tensor.elements.reshape(-1)) if dim is None else tensor
    if not row.ndim or not row.numel():
        return _NO_ROW
    result = kth(row, (row.shape[dim or 0] + 1) // 2, dim or 0, keepdim)
    return result if is_declined(result) or dim is not None else result[0]


def _ordered(tensor: Any, dim: int, ranks: range, *, largest: bool, stable: bool = False) -> Any:
    if not tensor.ndim or not holds((*SYMBOLIC, Ordered), tensor):
        return Declined("there is no rule for an order of outcomes")
    rows, place = moveaxis(tensor.elements, dim, -1), caller()
    places = empty((*rows.shape[:-1], len(ranks)), dtype=object)
    for index in np.ndindex(*rows.shape[:-1]):
        row = list(rows[index])
        places[index] = [Deferred(_ranked(row, rank, place, largest=largest, stable=stable)) for rank in ranks]
    values = empty(places.shape, dtype=object)
    for index in np.ndindex(*places.shape):
        values[index] = Deferred(_refusing("the value of one of several random numbers is needed, not only its place"))
        parts = () if holds(Ordered, tensor) else tuple(map(number, rows[index[:-1]]))
        if parts and ranks[index[-1]] == 0:
            values[index] = largest_of(parts, largest=largest)
        elif 0 < len(parts) <= MOST_ORDERED and not any(map(_has_no_place, parts)):
            values[index] = at_rank(parts, ranks[index[-1]], largest=largest)
    return lazy_like(tensor, moveaxis(values, -1, dim)), lazy_like(tensor, moveaxis(places, -1, dim), torch.int64)


def _has_no_place(part: Any) -> bool:
    return isinstance(part, Extreme | Joined) or (not isinstance(part, SYMBOLIC) and math.isnan(part))


def _ranked(row: Sequence[Any], rank: int, place: str, *, largest: bool, stable: bool) -> Callable[[], int]:
    def found() -> int:
        entries = [number(element) for element in _scores(row)]
        return _placed(
            "torch.sort or topk",
            place,
            lambda: ranked_from_either_end(entries, rank, largest=largest, first_of_ties=stable, place=place),
        )

    return found


def _refusing(sentence: str) -> Callable[[], Any]:
    def refuse() -> Any:
        raise NeedsValue("order-alone-is-known", sentence)

    return refuse


# Look-ups


def searched(
    bounds: Any, values: Any, *, right: bool = False, side: str | None = None, sorter: Any = None, **_: Any
) -> Any:
    """Answer ``searchsorted`` of random numbers in bounds that are known."""
    if not isinstance(values, SymbolicTensor) or not is_settled(bounds, shares=False) or sorter is not None:
        return Declined("there is no rule for random bounds, or for a sorter")
    rows = bounds.reshape(-1, bounds.shape[-1]).tolist()
    flat = values.elements.reshape(len(rows), -1) if bounds.ndim > 1 else values.elements.reshape(1, -1)
    result = empty(flat.shape, dtype=object)
    for row, column in np.ndindex(flat.shape):
        element: Any = flat[row, column]
        if not isinstance(element, SYMBOLIC):
            return Declined("there is no rule for an outcome among bounds")
        ask = partial(element.interval_of, rows[row], caller(), or_equal=right or side == "right")
        result[row, column] = Deferred(ask)
    return lazy_like(values, result.reshape(tuple(values.shape)), torch.int64)


# The table

aten: Any = torch.ops.aten

_VIEWS = ("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "select", "slice", "expand", "t", "transpose",
          "permute", "split", "unbind", "alias", "detach", "unfold", "diagonal")  # fmt: skip
_SELECTIONS = ("index", "index_select", "gather", "take", "masked_select", "flip", "roll", "repeat", "tile",
               "repeat_interleave")  # fmt: skip
_COPIES = ("clone", "contiguous", "lift_fresh")
_SHAPES = ("zeros_like", "ones_like", "empty_like", "full_like", "new_zeros", "new_ones", "new_empty", "new_full")
MOVES = {"scatter": (0, 3), "index_copy": (0, 3), "masked_scatter": (0, 2), "index_put": (0, 2),
          "select_scatter": (0, 1), "slice_scatter": (0, 1)}  # fmt: skip
"""What puts one tensor among another, and where both stand among its arguments."""
_FAMILIES = {Family.ARITHMETIC: arithmetic, Family.CLAMP: clamping, Family.WHOLE_PART: whole_parts,
             Family.COMPARISON: compared, Family.QUESTION: asked}  # fmt: skip
"""What adapts the arguments of torch for the rows of a family."""
_OTHERS: dict[str, Callable[..., Any]] = {
    "_to_copy": converted,
    "cat": joined(np.concatenate),
    "stack": joined(np.stack),
    "_local_scalar_dense": scalar,
    "rsub": lambda left, right, **more: arithmetic("subtract")(right, left, **more),
    "where": chosen,
    "masked_fill": lambda tensor, mask, value: chosen(mask, value, tensor),
    "relu": lambda tensor: clamping("maximum")(tensor, 0.0),
    "bitwise_not": negated,
    "logical_not": negated,
    "bitwise_and": both,
    "logical_and": both,
    "bitwise_or": either,
    "logical_or": either,
    "cumsum": running(Count),
    "cumprod": running(Product),
    "sum": summed,
    "prod": multiplied,
    "mean": averaged,
    "all": all_of,
    "any": any_of,
    "constant_pad_nd": padded,
    "_softmax": ordered_as,
    "_log_softmax": ordered_as,
    "argmax": extreme(largest=True),
    "argmin": extreme(largest=False),
    "max": extreme_with_value(largest=True),
    "min": extreme_with_value(largest=False),
    "amax": largest_along(largest=True),
    "amin": largest_along(largest=False),
    "aminmax": both_extremes,
    "cummax": running_extreme(largest=True),
    "cummin": running_extreme(largest=False),
    "topk": best,
    "sort": ordered,
    "argsort": order,
    "kthvalue": kth,
    "median": median,
    "nanmedian": median,
    "searchsorted": searched,
    "bucketize": lambda values, bounds, **more: searched(bounds, values, **more),
}
_FOR_EACH_OUTCOME = ("_softmax", "_log_softmax", "_to_copy", "index", "index_select", "gather", "where", "log", "exp",
                     "neg", "add", "sub", "rsub", "mul", "div", "clamp", "cumsum", "cumprod", "sum", "argmax", "argmin",
                     "lt", "le", "gt", "ge", "eq", "ne")  # fmt: skip
"""What is done to logits and probabilities between a model and a decision: see ``alternatives``."""


def _table() -> dict[Any, Callable[..., Any]]:
    result = {
        **{name: taking(getattr(aten, name), view=True) for name in _VIEWS},
        **{name: taking(getattr(aten, name), view=False) for name in _SELECTIONS},
        **dict.fromkeys(_COPIES, same),
        **{name: shaped(getattr(aten, name)) for name in _SHAPES},
        **{name: _FAMILIES[row.family](row.name) for name, row in OF_TORCH.items()},
        **{name: moving(getattr(aten, name), *places) for name, places in MOVES.items()},
        **_OTHERS,
        **COMPOSED,
    }
    result |= {name: on_alternatives(getattr(aten, name), result.get(name)) for name in _FOR_EACH_OUTCOME}
    result |= {name: when_looked_at(name, getattr(aten, name), result[name]) for name in OF_WHOLE_NUMBERS}
    result |= {name: at_large_first(name, getattr(aten, name), result.get(name)) for name in NAMES}
    return {getattr(aten, name): handler for name, handler in result.items()}


HANDLERS.update(_table())
