"""What is known of each operation of torch on lazy tensors: one table, by its name in ``torch.ops.aten``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from specverify.intercept.torch.alternatives import on_alternatives
from specverify.intercept.torch.at_large import NAMES, at_large_first
from specverify.intercept.torch.lazy_operations import (
    arithmetic,
    best,
    both,
    certain,
    chosen,
    clamping,
    compared,
    extreme,
    extreme_with_value,
    negated,
    order,
    ordered,
    running,
    searched,
    summed,
)
from specverify.intercept.torch.lazy_tensor import HANDLERS
from specverify.intercept.torch.lazy_views import converted, joined, same, scalar, taking
from specverify.intercept.unknowns.deferred import Count, Product

aten: Any = torch.ops.aten

_VIEWS = ("view", "_unsafe_view", "reshape", "unsqueeze", "squeeze", "select", "slice", "expand", "t", "transpose",
          "permute", "split", "unbind", "alias", "detach")  # fmt: skip
_SELECTIONS = ("index", "index_select", "gather", "masked_select", "flip", "roll", "repeat")
_COPIES = ("clone", "contiguous", "lift_fresh")
_ALGEBRA = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "neg": "negative",
            "reciprocal": "reciprocal", "abs": "absolute", "pow": "power", "sqrt": "sqrt", "log": "log", "log2": "log2",
            "log10": "log10", "log1p": "log1p", "exp": "exp", "exp2": "exp2", "expm1": "expm1"}  # fmt: skip
"""By the names of ``algebra``."""
_CLAMPS = {"clamp": "clip", "clamp_min": "maximum", "clamp_max": "minimum", "maximum": "maximum", "minimum": "minimum"}
_RELATIONS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
              "ne": "not_equal"}  # fmt: skip
_OTHERS: dict[str, Callable[..., Any]] = {
    "_to_copy": converted,
    "cat": joined(np.concatenate),
    "stack": joined(np.stack),
    "_local_scalar_dense": scalar,
    "rsub": lambda left, right, **more: arithmetic("subtract")(right, left, **more),
    "where": chosen,
    "masked_fill": lambda tensor, mask, value: chosen(mask, value, tensor),
    "isnan": certain("isnan"),
    "isinf": certain("isinf"),
    "bitwise_not": negated,
    "logical_not": negated,
    "bitwise_and": both,
    "logical_and": both,
    "cumsum": running(Count),
    "cumprod": running(Product),
    "sum": summed,
    "argmax": extreme(largest=True),
    "argmin": extreme(largest=False),
    "max": extreme_with_value(largest=True),
    "min": extreme_with_value(largest=False),
    "topk": best,
    "sort": ordered,
    "argsort": order,
    "searchsorted": searched,
    "bucketize": lambda values, bounds, **_: searched(bounds, values),
}
_FOR_EACH_OUTCOME = ("_softmax", "_log_softmax", "_to_copy", "index", "index_select", "gather", "where", "log", "exp",
                     "neg", "add", "sub", "rsub", "mul", "div", "clamp", "cumsum", "cumprod", "sum", "argmax", "argmin",
                     "lt", "le", "gt", "ge", "eq", "ne")  # fmt: skip
"""What is done to logits and probabilities between a model and a decision: see ``alternatives``."""


def _table() -> dict[Any, Callable[..., Any]]:
    found = {
        **{name: taking(getattr(aten, name), view=True) for name in _VIEWS},
        **{name: taking(getattr(aten, name), view=False) for name in _SELECTIONS},
        **dict.fromkeys(_COPIES, same),
        **{name: arithmetic(known) for name, known in _ALGEBRA.items()},
        **{name: clamping(known) for name, known in _CLAMPS.items()},
        **{name: compared(known) for name, known in _RELATIONS.items()},
        **_OTHERS,
    }
    found |= {name: on_alternatives(getattr(aten, name), found.get(name)) for name in _FOR_EACH_OUTCOME}
    found |= {name: at_large_first(name, getattr(aten, name), found.get(name)) for name in NAMES}
    return {getattr(aten, name): handler for name, handler in found.items()}


HANDLERS.update(_table())
