"""One row of logits under sampling parameters, computed as one vector: ``reference.warped`` at any vocabulary size.

The result includes a bound on the error of a right program, and the tokens whose truncation is doubtful.

* The bound adds the relative errors of the steps of a softmax. Let u be half the spacing of the floats at 1, x a logit
  divided by the temperature, d its distance from the largest one, and Z the sum of exp(-d). The division by the
  temperature has an error of x u, the subtraction of the largest logit d u, the exponential 5 u, and the division by Z
  has u. A program that computes exp(log-softmax) adds d u and u ln Z.
* A truncation is doubtful for tokens that are tied, or nearly tied in those floats, at its threshold: the choice
  between them is a convention, or depends on rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from specverify.laws.call_rule import PmfRow
from specverify.laws.rounding import FLOAT32


def processed_row(
    logits: Any, temperature: float, top_k: int | None, top_p: float | None, min_p: float | None, epsilon: float
) -> PmfRow:
    """Return the pmf of ``logits`` ``[vocabulary]``, float64, under temperature, top-k, top-p and min-p, in that order.

    ``top_k``, ``top_p`` or ``min_p`` None leaves out this truncation. ``epsilon`` is the spacing at 1 of the dtype of
    the logits; it determines the bound on the error and the doubtful tokens in the result.
    """
    if temperature == 0:
        best = logits == logits.max()
        pmf = best / best.sum()
        return PmfRow(pmf if best.sum() == 1 else best.astype(np.float64), doubtful=best if best.sum() > 1 else False)
    scaled = (logits - logits.max()) / temperature
    weights = np.exp(scaled)
    pmf, possible = weights / weights.sum(), weights > 0
    size = (np.abs(np.where(possible, logits, 0.0)) + abs(float(logits.max()))) / temperature
    off = np.where(possible, size / 2 - scaled + math.log(float(weights.sum())) + 5, 0.0)
    near = max(epsilon, FLOAT32) * float(off[possible & (pmf > pmf.max() * 1e-6)].max())
    doubtful = np.zeros(len(pmf), dtype=bool)
    cuts: tuple[tuple[Any, Callable[..., Any]], ...] = ((top_k, _likeliest), (top_p, _nucleus), (min_p, _relative))
    for value, cut in cuts:
        if value is not None:
            inside, beside = cut(pmf, value, 2 * near)
            kept = np.where(inside | beside, pmf, 0.0) / pmf[inside].sum()
            pmf, doubtful = kept, (doubtful | beside) & (kept > 0)
    return PmfRow(pmf, off, doubtful if doubtful.any() else False)


def _likeliest(pmf: Any, count: int, near: float) -> tuple[Any, Any]:
    """Return two masks over the tokens of ``pmf``: the ``count`` most probable ones, and those near a tie.

    A token is near a tie if its probability and that of the least probable of the ``count`` tokens differ by at most a
    relative ``near``.
    """
    if count >= len(pmf):
        return pmf > 0, np.zeros(len(pmf), dtype=bool)
    return _above(pmf, float(np.partition(pmf, -count)[-count]), near)


def _relative(pmf: Any, ratio: float, near: float) -> tuple[Any, Any]:
    """Return two masks over the tokens of ``pmf``: those that min-p keeps, and those near its threshold.

    The threshold is ``ratio`` times the largest probability. A token is near it if the two differ by at most a relative
    ``near``.
    """
    inside, beside = _above(pmf, float(pmf.max()) * ratio, near)
    at = np.abs(pmf - pmf.max() * ratio) <= near * pmf.max() * ratio
    return inside, beside | (at & (pmf > 0))


def _above(pmf: Any, threshold: float, near: float) -> tuple[Any, Any]:
    beside = (pmf > 0) & (np.abs(pmf - threshold) <= near * threshold)
    return (pmf >= threshold) & (pmf > 0), beside if beside.sum() > 1 else np.zeros(len(pmf), dtype=bool)


def _nucleus(pmf: Any, mass: float, near: float) -> tuple[Any, Any]:
    """Return two masks over the tokens of ``pmf``: those that top-p keeps, and those that it may keep or drop.

    The threshold of top-p is ``mass``. A token may be kept or dropped if a tie, or a rounding error of ``near`` in the
    cumulated sum, decides about it.
    """
    order = np.argsort(-pmf, kind="stable")
    ranked = pmf[order]
    before = np.cumsum(ranked) - ranked
    inside, beside = np.zeros(len(pmf), dtype=bool), np.zeros(len(pmf), dtype=bool)
    inside[order] = (before < mass) & (ranked > 0)
    last = float(ranked[(before < mass) & (ranked > 0)][-1])
    tied = (ranked > 0) & (np.abs(ranked - last) <= near * last)
    close = (ranked > 0) & (np.abs(before - mass) <= near)
    beside[order] = (tied if tied.sum() > 1 else False) | (close & (before > 0))
    return inside, beside
