"""Views, selections and copies of symbolic tensors: the same elements in another shape.

To find the elements, torch applies the operation to a tensor of indices. A handler takes the arguments of a torch
operation and returns the result, or ``Declined`` if it has no rule for these arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache, lru_cache, partial, reduce
from typing import Any

import torch

from specverify.intercept.cpython import patches
from specverify.intercept.refusals import Declined
from specverify.intercept.symbolic.algebra import narrowed
from specverify.intercept.symbolic.continuous import SYMBOLIC, Continuous, is_whole
from specverify.intercept.symbolic.deferred import Categorical, Chosen, Deferred, is_open, known
from specverify.intercept.symbolic.large import at_large_now
from specverify.intercept.symbolic.primitives import answered, towards_zero
from specverify.intercept.symbolic.rows import each, moved
from specverify.intercept.torch.tensors import (
    SymbolicTensor,
    View,
    arguments_of,
    elements_of,
    holds,
    in_all,
    is_settled,
    lazy_like,
    look_at,
    names_of_arguments,
    only_source,
    picked,
    view_of,
)


def taking(function: Any, *, view: bool) -> Callable[..., Any]:
    """Return the handler of ``function``, which selects elements of a symbolic tensor.

    Its result is a view of the tensor if ``view`` is true, else a copy.
    """

    def handler(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, SymbolicTensor) or not _may_be_read(args, tensor):
            return Declined("an index is random")
        if any(isinstance(value, torch.dtype) for value in args):  # the same bits, read as other numbers
            return Declined("random numbers are read as bits of another dtype")
        args = tuple(in_all(look_at, value) for value in args)
        where = _where(function, tuple(tensor.shape), args, kwargs)
        again = partial(_again, function, args, kwargs)
        if not isinstance(where, (list, tuple)):
            return _taken(tensor, where, again if view else None)
        return type(where)(_taken(tensor, part, partial(again, item=item)) for item, part in enumerate(where))

    return handler


def _may_be_read(args: Any, *data: Any) -> bool:
    """Return whether the indices in ``args`` may be converted to plain numbers, by drawing unread outcomes if needed.

    * If no index is random: True.
    * If an index is a symbolic number: False.
    * If indices are unread outcomes and ``data``, the moved tensors, hold symbolic numbers: True, but False in
      large-vocabulary mode.
    * If indices are unread outcomes and ``data`` hold unread outcomes too: True, so the elements that are not selected
      are not drawn. False if all depend on one draw; the operation is then run for each outcome.
    """
    if all(is_settled(value, shares=False) for value in args):
        return True
    if any(_holds_numbers(value) for value in args):
        return False
    if holds(SYMBOLIC, *data):
        return not at_large_now()
    return not all(is_settled(value, shares=False) for value in data) and only_source((args, data)) is None


def _holds_numbers(value: Any) -> bool:
    return any(map(_holds_numbers, value)) if isinstance(value, (list, tuple)) else holds(SYMBOLIC, value)


def _where(function: Any, shape: tuple[int, ...], args: Any, kwargs: Any) -> Any:
    """Return the flat indices of the elements that ``function(tensor, *args, **kwargs)`` selects.

    The tensor has the given ``shape``. The result is one array, or several if the function returns several tensors.
    """
    few = math.prod(shape) <= MOST_REMEMBERED
    if kwargs or not few or not all(type(value) in _PLACES or _are_places(value) for value in args):
        return _worked_out(function, shape, args, kwargs)
    return _where_before(function, shape, tuple(tuple(value) if type(value) is list else value for value in args))


_PLACES = frozenset({int, type(None)})
MOST_REMEMBERED = 1024
"""Limit of elements of a tensor for which the source positions of an operation are cached."""


def _are_places(value: Any) -> bool:
    return type(value) is list and all(type(item) is int for item in value)


def places_at(shape: tuple[int, ...], index: Any) -> Any:
    """Return the flat indices of the elements that ``index`` selects from a tensor of this shape."""
    if type(index) is tuple and all(type(value) is int for value in index) and math.prod(shape) <= MOST_REMEMBERED:
        return _places_before(shape, index)
    return _worked_out(operator.getitem, shape, (index,), {})


@lru_cache(maxsize=1 << 12)
def _places_before(shape: tuple[int, ...], index: tuple[int, ...]) -> Any:
    return _worked_out(operator.getitem, shape, (index,), {})


@lru_cache(maxsize=1 << 12)
def _where_before(function: Any, shape: tuple[int, ...], args: Any) -> Any:
    return _worked_out(function, shape, args, {})


def _worked_out(function: Any, shape: tuple[int, ...], args: Any, kwargs: Any) -> Any:
    result = function(torch.arange(math.prod(shape)).reshape(shape), *args, **kwargs)
    return type(result)(map(_places, result)) if isinstance(result, (list, tuple)) else _places(result)


def _places(found: torch.Tensor) -> Any:
    places = found.numpy()
    places.setflags(write=False)
    return places


def _again(function: Any, args: Any, kwargs: Any, base: torch.Tensor, item: int | None = None) -> Any:
    result = function(base, *args, **kwargs)
    return result if item is None else result[item]


def _taken(tensor: SymbolicTensor, where: Any, again: Callable[..., torch.Tensor] | None) -> SymbolicTensor:
    if again is not None:
        return view_of(View(tensor, again, where))
    return lazy_like(tensor, picked(tensor, where))


def shaped(function: Any) -> Callable[..., Any]:
    """Return the handler of ``function``, such as ``zeros_like``, which reads only the shape and dtype of a tensor."""

    def handler(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if not all(is_settled(value, shares=False) for value in (*args, *kwargs.values())):
            return Declined("a shape or a value is random")
        return function(torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device), *args, **kwargs)

    return handler


def same(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    """Return a copy of ``tensor`` with the same symbolic elements, on another device if one is given."""
    return SymbolicTensor(tensor.elements.copy(), tensor.dtype, kwargs.get("device") or tensor.device)


def _pickled(tensor: SymbolicTensor, protocol: Any) -> Any:
    return look_at(tensor).__reduce_ex__(protocol)


SymbolicTensor.__deepcopy__ = lambda tensor, memo: tensor.clone()  # type: ignore[method-assign]
SymbolicTensor.__reduce_ex__ = _pickled  # type: ignore[assignment, method-assign]


def converted(tensor: Any, *_: Any, **kwargs: Any) -> Any:
    """Return ``tensor`` in another dtype or on another device, the arguments ``dtype`` and ``device`` of the operation.

    A symbolic number becomes its integer part in an integer dtype, and 1 or 0 in ``torch.bool``. Returns ``Declined``,
    so that torch converts all possible values:

    * for ``Chosen`` elements, except between integer dtypes;
    * without symbolic numbers, for a conversion to floats of floats or of outcomes of a categorical draw.
    """
    dtype, device = kwargs.get("dtype") or tensor.dtype, kwargs.get("device") or tensor.device
    whole = not tensor.dtype.is_floating_point
    if dtype == tensor.dtype:
        return SymbolicTensor(tensor.elements.copy(), dtype, device)
    if whole and dtype is not torch.bool and not dtype.is_floating_point:
        return SymbolicTensor(each(lambda element: _among(element, dtype), tensor.elements), dtype, device)
    if tensor.dtype is torch.bool and not holds(Chosen, tensor):
        return SymbolicTensor(tensor.elements.copy(), dtype, device)
    if holds(Chosen, tensor):
        return Declined("outcomes of one draw are converted: that is done for each of them")
    if dtype.is_floating_point and not holds(SYMBOLIC, tensor) and (not whole or holds(Categorical, tensor)):
        return Declined("outcomes of a draw are converted to floats")
    cast: Any = float if dtype.is_floating_point else (lambda number: int(number != 0)) if dtype is torch.bool else int
    return SymbolicTensor(each(lambda element: _cast(cast, element, dtype), tensor.elements), dtype, device)


_MANY_BITS = 32


@cache
def _ends(dtype: torch.dtype) -> tuple[int, int, int]:
    """Return the smallest and largest number of an integer dtype, and its number of bits."""
    result = torch.iinfo(dtype)
    return result.min, result.max, result.bits


def _among(element: Any, dtype: torch.dtype) -> Any:
    """Return ``element``, an integer or an integer outcome, converted to the integer dtype ``dtype``.

    If all its possible values fit, the element is unchanged, and may stay symbolic. Counts and indices are assumed to
    fit in 32 bits.
    """
    least, most, bits = _ends(dtype)
    low: float = least
    high: float = most if bits >= _MANY_BITS else least - 1
    if isinstance(element, Categorical):
        low, high = element.first, element.first + len(element.pmf) - 1
    elif isinstance(element, SYMBOLIC):
        low, high = element.ends()[0], element.ends()[1] - 1
    if least <= low <= high <= most:
        return element
    if not is_open(element):
        return torch.tensor(known(element)).to(dtype).item()
    return Deferred(lambda: torch.tensor(known(element)).to(dtype).item())


def _cast(cast: Callable[[Any], Any], element: Any, dtype: torch.dtype) -> Any:
    if not isinstance(element, SYMBOLIC):
        return Deferred(lambda: cast(known(element))) if is_open(element) else cast(known(element))
    if dtype is torch.bool:
        return Deferred(lambda: int(answered("not_equal", element, 0.0)))
    if dtype.is_floating_point:
        return narrowed(element, str(dtype).removeprefix("torch."))
    part = element if isinstance(element, Continuous) and is_whole(element) else towards_zero(element)
    (least, most, _), (low, high) = _ends(dtype), element.ends()
    beyond = high > most + 1 or (high == most + 1 and isinstance(element, Continuous) and element.clamped)
    if least - 1 < low and not beyond:
        return part
    return Deferred(lambda: torch.tensor(float(known(part)), dtype=torch.float64).to(dtype).item())


_PUT = {"self", "src", "source", "values"}
"""Parameter names of a tensor that is written into another one, and of that other one."""


def moving(function: Any) -> Callable[..., Any]:
    """Return the handler of ``function``, such as ``scatter``, which writes elements of one tensor into another.

    The handler needs plain numbers as indices. An index may be an outcome that is drawn only when it is read. If the
    tensors hold symbolic numbers, the handler draws such an index. If they do not, it returns ``Declined``
    (``_may_be_read``), and torch runs the operation for each outcome.
    """
    names = next(each for each in names_of_arguments(function) if len(_PUT & {*each}) == 2)
    data = [place for place, name in enumerate(names) if name in _PUT]

    def handler(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= max(data) or not isinstance(args[0], torch.Tensor):
            return Declined("there is no tensor to put elements into")
        rest = [value for place, value in enumerate(args) if place not in data]
        if not _may_be_read(rest, *(args[place] for place in data)) or any(kwargs.values()):
            return Declined("a place, or an option, is random or not supported")
        given = [value if place in data else in_all(look_at, value) for place, value in enumerate(args)]

        def move(*places: Any) -> Any:
            for place, positions in zip(data, places, strict=True):
                given[place] = torch.from_numpy(positions)
            return function(*given).numpy()

        elements = moved(move, [elements_of(args[place]) for place in data])
        return lazy_like(next(item for item in args if isinstance(item, SymbolicTensor)), elements, args[0].dtype)

    return handler


def padding(function: Any) -> Callable[..., Any]:
    """Return the handler of ``function``, such as ``triu`` or a padding, for symbolic tensors.

    The operation keeps some elements and fills the rest.

    The fill value is a constant: the argument ``value`` of the operation, or 0 if it has none.
    """

    def handler(*args: Any, **kwargs: Any) -> Any:
        given = arguments_of(function, *args, **kwargs)
        tensor, value = given.pop("self"), given.pop("value", None) or 0.0
        options = {name: option for name, option in given.items() if option is not None}
        if function(torch.empty(tensor.shape, device="meta"), **options).numel() > _MOST_PADDED:
            return Declined("there is no rule for a result with too many numbers")

        def move(places: Any) -> Any:
            return function(torch.from_numpy(places), **options).numpy()

        number = bool(value) if tensor.dtype is torch.bool else value if tensor.dtype.is_floating_point else int(value)
        return lazy_like(tensor, moved(move, [tensor.elements], number))

    return handler


_MOST_PADDED = 1 << 20
"""Limit of elements of a tensor that is filled up with constants, such as the diagonal matrix of a vector."""


def joined(join: Callable[..., Any]) -> Callable[..., Any]:
    """Return the handler of ``cat`` or ``stack`` for symbolic tensors; ``join`` is the function of NumPy."""

    def handler(tensors: Any, dim: int = 0) -> Any:
        template = next(item for item in tensors if isinstance(item, SymbolicTensor))
        dtype = reduce(torch.promote_types, (item.dtype for item in tensors))
        return lazy_like(template, join([elements_of(item) for item in tensors if item.numel()], axis=dim), dtype)

    return handler


def scalar(tensor: Any) -> Any:
    """Return the number in a tensor of one element, drawing it if needed.

    Raises ``NeedsValue`` for a continuous symbolic number.
    """
    element = tensor.elements.item()
    if isinstance(element, SYMBOLIC):
        patches.met()
    return known(element)
