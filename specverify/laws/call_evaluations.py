"""Evaluate the rule of one call of speculative sampling in 16-bit floats, in each way in which programs compute it.

A right program that computes in bfloat16 differs from the exact law by more than the bound for float32 permits. The
difference is the error of the rule itself in bfloat16, entry by entry, which this module computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from specverify.laws.call_rule import Rows

Round = Callable[[Any], Any]


def rounded(dtype: str) -> Round:
    """Return a function that rounds float32 results to ``dtype``, a 16-bit float type, and returns them in float64."""

    def in_float16(values: Any) -> Any:
        return np.asarray(values, dtype=np.float32).astype(np.float16).astype(np.float64)

    def in_bfloat16(values: Any) -> Any:
        bits = np.asarray(values, dtype=np.float32).view(np.uint32)
        even = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
        return even.view(np.float32).astype(np.float64)

    return {"float16": in_float16, "bfloat16": in_bfloat16}[dtype]


def evaluated_kept(rows: Rows, position: int, dtype: str) -> Iterator[float]:
    """Yield the acceptance probability of the draft at ``position``, for each way to evaluate min(1, p/q) in 16 bits.

    There are four ways: the rows of p and q are used as given or scaled to sum 1, and the quotient is rounded to
    ``dtype`` or not.
    """
    store, draft = rounded(dtype), rows.drafts[position]
    for p, q in _scalings(rows, position, store):
        ratio = p[draft] / q[draft] if q[draft] > 0 else 1.0
        yield min(1.0, ratio)
        yield min(1.0, float(store(ratio)))


def evaluated_behind(rows: Rows, position: int, dtype: str) -> Iterator[Any]:
    """Yield the law ``[V]`` of the token after ``position`` accepted drafts, for each way to evaluate it in 16 bits.

    It is the law of the replacement, or of the bonus token after the last draft. The rows of p and q are used as given
    or scaled to sum 1, and the division of the law by its sum is rounded to ``dtype`` or not.
    """
    store = rounded(dtype)
    for p, q in _scalings(rows, position, store):
        weights = p if q is None else np.maximum(store(p - q), 0.0)
        if q is not None and not weights.any():
            weights = p
        yield weights / weights.sum()
        divided = store(weights / store(weights.sum()))
        yield divided / divided.sum()


def _scalings(rows: Rows, position: int, store: Round) -> Iterator[tuple[Any, Any]]:
    """Yield the rows (p, q) at ``position`` twice: first as given, then scaled to sum 1.

    q is None after the last draft. ``store`` rounds the scaled rows to the 16-bit dtype.
    """
    p, q = rows.p[position].pmf, rows.q[position].pmf if position < len(rows.q) else None
    yield p, q
    yield store(p / store(p.sum())), None if q is None else store(q / store(q.sum()))
