"""What is known of each operation of torch on lazy tensors: one table, by its name in ``torch.ops.aten``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from specverify.intercept.symbolic.deferred import Count, Product
from specverify.intercept.symbolic.primitive import Family
from specverify.intercept.symbolic.primitives import OF_TORCH
from specverify.intercept.torch.alternatives import on_alternatives
from specverify.intercept.torch.dispatch import HANDLERS
from specverify.intercept.torch.elementwise import (
    COMPOSED,
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
    multiplied,
    negated,
    running,
    summed,
    when_looked_at,
    whole_parts,
)
from specverify.intercept.torch.elementwise import NAMES as OF_WHOLE_NUMBERS
from specverify.intercept.torch.large import NAMES, at_large_first
from specverify.intercept.torch.rows import (
    best,
    both_extremes,
    extreme,
    extreme_with_value,
    kth,
    largest_along,
    median,
    order,
    ordered,
    ordered_as,
    running_extreme,
    searched,
)
from specverify.intercept.torch.views import converted, joined, moving, padded, same, scalar, shaped, taking

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
