"""The dtype that operands of torch are taken to before something is done with them, and what that does to 16 bits."""

from __future__ import annotations

from typing import Any

import torch

from specverify.intercept.refusals import is_declined
from specverify.intercept.torch.lazy_tensor import LazyTensor
from specverify.intercept.torch.lazy_views import converted
from specverify.intercept.unknowns.primitive import Result, Rounding
from specverify.intercept.unknowns.primitives import PRIMITIVES
from specverify.laws import rounding

_ROUNDED_ONCE = {
    name
    for row in PRIMITIVES.values()
    if row.rounding is Rounding.RESULT
    for name in (row.name, *row.torch, *row.python, "true_divide")
}
"""What torch computes in float32 of a row of 16 bits and a single number, and rounds when it is done."""


def result_type(name: str, *operands: Any) -> torch.dtype:
    """Return the dtype of what an operation of ``algebra`` gives, by its first two operands."""
    alike = [torch.empty((0,) * each.ndim, dtype=each.dtype) if isinstance(each, torch.Tensor) else each
             for each in operands[:2]]  # fmt: skip
    dtype: torch.dtype = alike[0].dtype if len(alike) == 1 else torch.result_type(*alike)
    floats = name in PRIMITIVES and PRIMITIVES[name].result is Result.FLOATS
    return torch.get_default_dtype() if floats and not dtype.is_floating_point else dtype


def in_one_dtype(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two operands as torch takes them where it computes or compares in floats of 16 bits: rounded to them.

    So is a single number, of Python or of another dtype, beside a row of 16 bits.
    """
    if not any(rounding.is_of_16_bits(getattr(each, "dtype", None)) for each in (left, right)):
        return left, right
    dtype = result_type("less", left, right)
    if not rounding.is_of_16_bits(dtype):
        return left, right
    rounding.saw(dtype)
    return _as(dtype, left), _as(dtype, right)


def rounds_at_the_end(name: str) -> bool:
    """Return whether a function of that name rounds what it gives, and no number that it is given."""
    return name in _ROUNDED_ONCE or (name[:1] in "ri" and name[1:] in _ROUNDED_ONCE)


def _as(dtype: torch.dtype, operand: Any) -> Any:
    if isinstance(operand, LazyTensor):  # inside a handler nobody answers what is called on one
        found = operand if operand.dtype is dtype else converted(operand, dtype=dtype)
        return operand.to(dtype) if is_declined(found) else found
    return operand.to(dtype) if isinstance(operand, torch.Tensor) else torch.tensor(operand, dtype=dtype)
