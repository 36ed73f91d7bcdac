"""Element-wise operations of symbolic tensors: comparisons, reductions, arithmetic, and the promotion of dtypes.

Results stay symbolic where possible. Operands are first converted to torch's promoted dtype, with its effect on 16-bit
floats. Composite operations are given by name in ``torch.ops.aten``. Integer arithmetic on outcomes of several draws is
computed when the result is read: multiplying token ids by a mask, or adding ids, does not draw them earlier.

A handler takes the arguments of a torch operation, at least one of them symbolic, and returns the result, or
``Declined`` if it has no rule for these arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import torch

from specverify.intercept import audit
from specverify.intercept.refusals import Declined, is_declined
from specverify.intercept.symbolic import rows
from specverify.intercept.symbolic.algebra import narrowed
from specverify.intercept.symbolic.continuous import SYMBOLIC
from specverify.intercept.symbolic.deferred import Chosen, Deferred, Truth, is_open, known, number
from specverify.intercept.symbolic.large import at_large_now
from specverify.intercept.symbolic.primitives import (
    OF_TORCH,
    PRIMITIVES,
    Family,
    Result,
    RoundedParts,
    answered,
    applied,
    compared,
    names_of,
    whole_part,
    with_rule,
)
from specverify.intercept.symbolic.together import ADD, MULTIPLY
from specverify.intercept.torch.tensors import SymbolicTensor, elements_of, holds, lazy_like, only_source
from specverify.intercept.torch.views import converted
from specverify.laws import rounding

# Dtypes


_ROUNDED_ONCE = {
    name
    for row in PRIMITIVES.values()
    if row.rounding is RoundedParts.RESULT
    for name in (row.name, *row.torch, *row.python, "true_divide")
}
"""Operations that torch computes in float32 for a 16-bit tensor and a scalar, rounding only the result."""


def result_type(name: str, *operands: Any) -> torch.dtype:
    """Return the dtype of the result of the operation ``name``, by torch's promotion of the first two operands.

    If the operation makes floats of integers, the result of integers is torch's default dtype.
    """
    alike = [torch.empty((0,) * each.ndim, dtype=each.dtype) if isinstance(each, torch.Tensor) else each
             for each in operands[:2]]  # fmt: skip
    dtype: torch.dtype = alike[0].dtype if len(alike) == 1 else torch.result_type(*alike)
    floats = name in PRIMITIVES and PRIMITIVES[name].result is Result.FLOATS
    return torch.get_default_dtype() if floats and not dtype.is_floating_point else dtype


def in_one_dtype(left: Any, right: Any) -> tuple[Any, Any]:
    """Return ``left`` and ``right`` rounded as torch rounds them before it computes or compares in 16-bit floats.

    A single number, of Python or of another dtype, is rounded too if the other operand is a 16-bit tensor. Other
    operands are unchanged.
    """
    if not any(rounding.is_of_16_bits(getattr(each, "dtype", None)) for each in (left, right)):
        return left, right
    dtype = result_type("less", left, right)
    if not rounding.is_of_16_bits(dtype):
        return left, right
    rounding.saw(dtype)
    return _as(dtype, left), _as(dtype, right)


def rounds_at_the_end(name: str) -> bool:
    """Return whether torch computes the function ``name`` of 16-bit floats in float32, and rounds only the result.

    If not, torch rounds the operands to 16 bits too.
    """
    return name in _ROUNDED_ONCE or (name[:1] in "ri" and name[1:] in _ROUNDED_ONCE)


def _as(dtype: torch.dtype, operand: Any) -> Any:
    if isinstance(operand, SymbolicTensor):  # inside a handler nobody answers what is called on one
        outcome = operand if operand.dtype is dtype else converted(operand, dtype=dtype)
        return operand.to(dtype) if is_declined(outcome) else outcome
    return operand.to(dtype) if isinstance(operand, torch.Tensor) else torch.tensor(operand, dtype=dtype)


# Lazy operations


Handler = Callable[..., Any]
ONE_DRAW = Declined("all elements hang on one draw: the operation is computed for each of its outcomes")
_CLAMPED_HALVES = Declined("random numbers of 16 bits are clamped: too many of them equal the bound")
_NO_BOOLS = Declined("an operation on bools is given other numbers")


def each(function: Callable[..., Any], *operands: Any) -> np.ndarray[Any, Any]:
    """Return the array of ``function`` applied to the elements of the operands, which are broadcast."""
    return rows.each(function, *map(elements_of, operands))


def hang_on_draws(*operands: Any) -> bool:
    """Return whether an operand has an element of type ``Chosen``, and no operand has a symbolic number.

    A ``Chosen`` element is a function of one unread draw: torch has computed its value for every outcome of the draw.
    """
    return holds(Chosen, *operands) and not holds(SYMBOLIC, *operands)


def template(*operands: Any) -> Any:
    """Return the first symbolic tensor among the operands; the result of an operation gets its device."""
    return next(operand for operand in operands if isinstance(operand, SymbolicTensor))


# The algebra of random numbers


def arithmetic(name: str) -> Handler:
    """Return the handler of ``name``, an arithmetic operation of the table of primitives, for symbolic numbers."""

    def handler(*operands: Any, alpha: Any = 1, rounding_mode: str | None = None, **more: Any) -> Any:
        if not holds(SYMBOLIC, *operands) or (alpha != 1 and name not in {ADD, "subtract"}):
            return Declined(f"there is no rule for {name} of outcomes, or for its factor alpha")
        if rounding_mode is not None:
            return whole_parts(rounding_mode)(arithmetic(name)(*operands))
        if alpha != 1:
            operands = operands[0], operands[1] * alpha
        if len(operands) == 2 and not rounds_at_the_end(name):
            operands = in_one_dtype(*operands)
        dtype = result_type(name, *operands)
        kind = str(dtype).removeprefix("torch.")
        outcome = each(lambda *elements: narrowed(applied(name, *map(number, elements)), kind), *operands)
        return lazy_like(template(*operands), outcome, dtype)

    return handler


def clamping(name: str) -> Handler:
    """Return the handler (the implementation for symbolic tensors) of ``name``, a clamp.

    A clamp gives the bound itself a positive probability.

    The handler declines for 16-bit floats, in which numbers near the bound are rounded to the bound and add to this
    probability.
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
    """Return the handler of ``name``, such as ``floor`` or ``sign``, for symbolic numbers.

    An integer result is an outcome that is drawn when it is read.
    """

    def handler(tensor: Any, *operands: Any, **more: Any) -> Any:
        if not holds(SYMBOLIC, tensor) or more.get("decimals"):
            return Declined(f"there is no rule for {name} of outcomes, or with a number of decimals")
        if name in {"sign", "heaviside"}:
            outcome = each(lambda *elements: Deferred(lambda: applied(name, *map(number, elements))), tensor, *operands)
            return lazy_like(tensor, outcome)
        return lazy_like(
            tensor, each(lambda e: whole_part(name, e) if isinstance(e, SYMBOLIC) else applied(name, known(e)), tensor)
        )

    return handler


# Choices, comparisons and bools


def choosing(name: str) -> Handler:
    """Return the handler (implementation for symbolic tensors) of ``name``, a choice by a condition like ``where``."""
    rule: Any = PRIMITIVES[name].scalar

    def handler(condition: Any, left: Any = None, right: Any = None) -> Any:
        if left is None or hang_on_draws(condition, left, right):
            return ONE_DRAW
        if not holds(SYMBOLIC, left, right) and only_source((condition, left, right)) is not None:
            return ONE_DRAW
        dtype = result_type(name, left, right)
        outcome = each(lambda which, one, other: rule(which, other, one), condition, left, right)
        return lazy_like(template(condition, left, right), outcome, dtype)

    return handler


def comparing(name: str) -> Handler:
    """Return the handler (implementation for symbolic tensors) of ``name``, a comparison.

    The result is drawn when it is read.
    """

    def handler(left: Any, right: Any) -> Any:
        if hang_on_draws(left, right) and only_source((left, right)) is not None:
            return ONE_DRAW
        left, right = in_one_dtype(left, right)
        place = audit.place()
        outcome = each(lambda one, other: compared(name, one, other, place), left, right)
        return lazy_like(template(left, right), outcome, torch.bool)

    return handler


def element_test(name: str) -> Handler:
    """Return the handler (implementation for symbolic tensors) of ``name``, a test of elements such as ``isnan``."""

    def ask(place: str, element: Any) -> Any:
        return Truth(lambda: int(answered(name, number(element), place=place)))

    def handler(tensor: Any) -> Any:
        if not holds(SYMBOLIC, tensor):
            return Declined(f"there is no rule for {name} of outcomes")
        return lazy_like(tensor, each(partial(ask, audit.place()), tensor), torch.bool)

    return handler


def of_bools(name: str) -> Handler:
    """Return the handler of ``name``, a logical operation such as ``logical_and``, for tensors of undrawn bools."""
    row: Any = PRIMITIVES[name]

    def one(*elements: Any) -> Any:
        if any(map(is_open, elements)):
            return row.scalar(*elements)
        return int(row.outcome(*(bool(known(element)) for element in elements)))

    def handler(*operands: Any) -> Any:
        if any(getattr(operand, "dtype", torch.bool) is not torch.bool for operand in operands):
            return _NO_BOOLS
        return lazy_like(template(*operands), each(one, *operands), torch.bool)

    return handler


# Composed


def _without_nan(tensor: Any, *given: Any, **named: Any) -> Any:
    """Handle ``nan_to_num``: plain numbers in ``tensor`` are replaced as usual.

    Symbolic numbers stay unchanged, because they are neither NaN nor infinite.
    """

    def made(element: Any) -> Any:
        if isinstance(element, SYMBOLIC):
            return element
        return torch.tensor(known(element), dtype=tensor.dtype).nan_to_num(*given, **named).item()

    return lazy_like(tensor, each(made, tensor))


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    return start + weight * (end - start)


def _threshold(tensor: Any, threshold: Any, value: Any) -> Any:
    return torch.where(tensor <= threshold, value, tensor)


def _softplus(tensor: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """Handle ``softplus``: ``log(1 + exp(beta * tensor)) / beta``.

    Where ``beta * tensor`` is above ``threshold``, torch returns ``tensor`` itself. The formula is used there too,
    because both results agree within the rounding of float32.
    """
    return torch.log1p(torch.exp(tensor * beta)) / beta


def _mean(tensor: Any, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    total = tensor.sum(dtype=dtype) if dim is None else tensor.sum(dim, keepdim, dtype=dtype)
    return total / (tensor.numel() / total.numel())


def _log_of_total(tensor: Any, dim: Any, keepdim: bool = False) -> Any:
    """Handle ``logsumexp``: the elements of ``tensor`` along ``dim`` are combined one after the other.

    ``keepdim`` keeps the reduced dimensions. Returns ``Declined`` for a tensor without dimensions, for one without
    elements, and for one with more than ``MOST_ELEMENTS`` elements.
    """
    axes = sorted({axis % max(tensor.ndim, 1) for axis in ([dim] if isinstance(dim, int) else dim)}, reverse=True)
    if not tensor.ndim or not tensor.numel() or tensor.numel() > MOST_ELEMENTS:
        return Declined("there is no rule for a logsumexp of one number, of none or of too many")
    for axis in axes:
        total = reduce(torch.logaddexp, tensor.unbind(axis))
        tensor = total.unsqueeze(axis) if keepdim else total
    return tensor


def _filled_at(tensor: Any, dim: int, index: Any, value: Any) -> Any:
    """Handle ``index_fill``: replace the elements of ``tensor`` at the indices ``index`` along ``dim`` by ``value``."""
    return tensor.masked_fill(torch.zeros(tensor.shape, dtype=torch.bool).index_fill(dim, index, value=True), value)


def _with_product(product: Handler) -> Handler:
    """Return the handler of an operation such as ``addmm``, which adds a tensor and the ``product`` of two others.

    A handler is the implementation for symbolic tensors.
    """

    def handler(tensor: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        result = product(left, right)
        if is_declined(result):
            return result
        return result * alpha + tensor * beta if beta else result * alpha  # what beta = 0 leaves out may be infinite

    return handler


def _product_of_matrices(left: Any, right: Any) -> Any:
    if left.numel() * right.shape[-1] > rows.MOST_PRODUCTS:
        return Declined("there is no rule for a product of such large matrices of random numbers")
    return (left[..., :, :, None] * right[..., None, :, :]).sum(-2)


_MADE_OF: dict[str, Handler] = {
    "frac": lambda tensor: torch.fmod(tensor, 1.0),
    "nan_to_num": _without_nan,
    "lerp": _lerp,
    "addcmul": lambda tensor, left, right, value=1: tensor + value * left * right,
    "addcdiv": lambda tensor, left, right, value=1: tensor + value * left / right,
    "hardtanh": lambda tensor, low=-1, high=1: tensor.clamp(low, high),
    "relu6": lambda tensor: tensor.clamp(0, 6),
    "threshold": _threshold,
    "softplus": _softplus,
    "log_sigmoid": lambda tensor: -_softplus(-tensor),
    "log_sigmoid_forward": lambda tensor: (-_softplus(-tensor), torch.empty(0)),
    "special_xlogy": lambda factor, tensor: factor * torch.log(tensor),
    "xlogy": lambda factor, tensor: factor * torch.log(tensor),
    "aminmax": lambda tensor, dim=None, keepdim=False: (
        torch.amin(tensor, () if dim is None else dim, keepdim),
        torch.amax(tensor, () if dim is None else dim, keepdim),
    ),
    "mean": _mean,
    "dot": lambda left, right: (left * right).sum(),
    "mv": lambda matrix, row: (matrix * row).sum(-1),
    "mm": _product_of_matrices,
    "bmm": _product_of_matrices,
    "addmm": _with_product(_product_of_matrices),
    "baddbmm": _with_product(_product_of_matrices),
    "trace": lambda tensor: tensor.diagonal().sum(),
    "logsumexp": _log_of_total,
    "hypot": lambda left, right: (left**2 + right**2).sqrt(),
    "count_nonzero": lambda tensor, dim=None: (tensor != 0).sum(() if dim is None else dim),
    "index_fill": _filled_at,
}


def composed(made_of: Handler) -> Handler:
    """Return the handler of an operation that ``made_of`` computes by other torch operations.

    ``made_of`` has the same arguments as the operation. The handler applies to symbolic numbers only; it returns
    ``Declined`` for outcomes.
    """

    def handler(*operands: Any, **more: Any) -> Any:
        return (
            made_of(*operands, **more)
            if holds(SYMBOLIC, *operands, *more.values())
            else Declined("there is no rule for outcomes")
        )

    return handler


COMPOSED = {name: composed(made_of) for name, made_of in _MADE_OF.items() if hasattr(torch.ops.aten, name)}
"""Operation -> handler composed of primitives, for the operations that torch has."""


def _padded_together(tensors: Any, batch_first: Any = False, value: float = 0.0, side: str = "right") -> Any:
    """Return ``tensors`` padded to the length of the longest one and stacked, as torch's ``pad_sequence`` does.

    The other parameters are those of ``pad_sequence``.
    """
    longest = max(len(each) for each in tensors)

    def missing(tensor: Any) -> list[int]:
        number = longest - len(tensor)
        return [0, 0] * (tensor.dim() - 1) + ([0, number] if side == "right" else [number, 0])

    same = [torch.nn.functional.pad(each, missing(each), value=value) for each in tensors]
    return torch.stack(same, dim=0 if batch_first else 1)


REWRITTEN: dict[Any, Handler] = {torch._C._nn.pad_sequence: _padded_together}  # noqa: SLF001 - it has no public name
"""Functions implemented in C++ that write into an internal tensor -> handler."""


# Whole numbers


NAMES = frozenset(
    names_of(OF_TORCH, Family.ARITHMETIC, Family.CLAMP).keys() & with_rule(OF_TORCH, "outcome").keys()
) | {"rsub"}
"""Names in ``torch.ops.aten`` of the operations handled here."""

MOST_ELEMENTS = 256
"""Above this number of elements, forcing all is cheaper than a symbolic rule for each."""


def when_looked_at(name: str, function: Any, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return a handler that calls ``handler`` and, if ``handler`` declines, defers the computation of each element.

    A deferred element is an outcome that ``function`` computes when it is read. ``name`` is the name of the operation.
    Nothing is deferred:

    * with keyword arguments, or in large-vocabulary mode;
    * if an operand is not of integers, has a symbolic number or more than ``MOST_ELEMENTS`` elements;
    * if the result is of floats.
    """

    def answer(*operands: Any, **more: Any) -> Any:
        outcome = handler(*operands, **more)
        if not is_declined(outcome) or more or at_large_now() or not _few_and_whole(operands):
            return outcome  # at a real vocabulary a map of a draw is known whole, and the draw stays open behind it
        dtype = function(*(_ones(operand) for operand in operands)).dtype
        if dtype.is_floating_point:
            return Declined("there is no rule for whole numbers that become floats")
        computed = each(lambda *elements: _element(name, function, operands, elements, dtype), *operands)
        return lazy_like(template(*operands), computed, dtype)

    return answer


def _few_and_whole(operands: Sequence[Any]) -> bool:
    whole = all(
        not operand.dtype.is_floating_point and operand.numel() <= MOST_ELEMENTS
        if isinstance(operand, torch.Tensor)
        else isinstance(operand, int)
        for operand in operands
    )
    return whole and not holds(SYMBOLIC, *operands) and any(isinstance(operand, SymbolicTensor) for operand in operands)


def _ones(operand: Any) -> Any:
    return torch.ones((1,) * operand.ndim, dtype=operand.dtype) if isinstance(operand, torch.Tensor) else 1


_ADDS, _MULTIPLIES = PRIMITIVES[ADD].torch, PRIMITIVES[MULTIPLY].torch


def _element(name: str, function: Any, operands: Sequence[Any], elements: Sequence[Any], dtype: torch.dtype) -> Any:
    """Return one element of the result of the operation ``name``: ``function`` of ``elements``.

    If one of ``elements`` is unread, the returned element is unread, except for products with 0. A sum with 0 or a
    product with 1 returns the other element. ``operands`` are the tensors or numbers of the elements, and ``dtype`` is
    that of the result.
    """
    if name in _ADDS + _MULTIPLIES:
        for place, one in enumerate(elements):
            beside = elements[1 - place]
            if not is_open(one) and known(one) == (name in _MULTIPLIES) and _dtype(operands[1 - place]) == dtype:
                return beside
            if not is_open(one) and not known(one) and name in _MULTIPLIES:
                return 0
    if not any(map(is_open, elements)):
        return _computed(function, operands, elements)
    compute = _product if name in _MULTIPLIES else _computed
    return Deferred(partial(compute, function, operands, elements))


def _dtype(operand: Any) -> torch.dtype | None:
    return getattr(operand, "dtype", None)


def _computed(function: Any, operands: Sequence[Any], elements: Sequence[Any]) -> Any:
    return function(*map(_single, operands, map(known, elements))).item()


def _single(operand: Any, number: Any) -> Any:
    """Return ``number`` as an operand with the dtype and number of dimensions of ``operand``, for torch's promotion."""
    if not isinstance(operand, torch.Tensor):
        return number
    return torch.full((1,) * operand.ndim, number, dtype=operand.dtype)


def _product(function: Any, operands: Sequence[Any], elements: Sequence[Any]) -> Any:
    """Return the product of two ``elements``, computed by ``function``.

    The first element is drawn; if it is 0, the second is not drawn. If the second of ``operands``, the tensors or
    numbers of the elements, is a bool mask, the second is drawn first.
    """
    first = 1 if _dtype(operands[1]) is torch.bool else 0
    return _computed(function, operands, elements) if known(elements[first]) else 0
