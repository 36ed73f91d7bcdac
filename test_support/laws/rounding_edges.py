"""Search for pmfs with the largest floating-point errors, as a share of the bound in ``rounding``.

Logits are drawn at random and improved by changing the worst ones so far: flat, peaked, one token against many, long
tails, large offsets. Values computed from them in a dtype, in the usual ways, are compared with a finer dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

Written = Callable[[Any], tuple[Any, Any]]
"""logits -> pmf and its logarithm, in their dtype."""


class Edge(NamedTuple):
    """The largest error of a computation as a share of its bound, and the case in which it occurred."""

    share: float
    case: str


def fine(array: Any) -> Any:
    """Return an array of floats in a finer dtype: float64, or the longest float for float64."""
    return np.asarray(array, dtype=np.longdouble if np.asarray(array).dtype == np.float64 else np.float64)


def exact_pmf(logits: Any) -> Any:
    """Return the softmax of logits, computed in the dtype of the logits."""
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def distance(one: Any, other: Any) -> float:
    """Return the total variation between two pmfs, each divided by its sum."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def law_of_a_round(p: Any, q: Any, coin: Any, residual: Any) -> Any:
    """Return the law of one token, given stored pmfs, acceptance ratios and residuals, by exact draws and coins."""
    drafted = q / q.sum()
    accepted = drafted * np.minimum(1, np.where(q > 0, coin, 0))
    left = np.maximum(residual, 0)
    left = left if left.sum() > 0 else p
    return accepted + (1 - accepted.sum()) * left / left.sum()


def logits_of(size: int, rng: np.random.Generator) -> Iterator[tuple[str, Any, Any]]:
    """Yield pairs of logits of a size, by name."""
    spread, offset = rng.choice([0.01, 0.1, 1.0, 4.0]), rng.choice([0.0, 0.3, 5.0])
    one_by_one = np.arange(size) * rng.uniform(0, 20 / size)
    many = np.full(size, -rng.uniform(0, 3)) - (np.arange(size) > 0) * rng.uniform(0, math.log(size))
    flat, other = (np.full(size, -rng.uniform(0, 1)) for _ in range(2))
    flat[0], other[-1] = 0.0, 0.0
    normal = rng.normal(0, spread, size)
    peaked = rng.normal(0, spread, size)
    peaked[0] += math.log(size)
    yield "flat", flat + offset, other - offset
    yield "flat and peaked", flat + offset, peaked
    yield "one against many", many + offset, other
    yield "apart", normal + offset, rng.normal(0, spread, size)
    yield "almost equal", normal - offset, normal - offset + rng.normal(0, 1e-2, size)
    yield "tails", offset - one_by_one, offset - one_by_one[::-1]


def worst(size: int, rounds: int, error: Callable[[Any, Any], float], bound: float) -> Edge:
    """Search for the logits with the largest error, first at random and then near the worst that was found."""
    rng = np.random.default_rng(size)
    found, best = Edge(0.0, ""), (np.zeros(size), np.zeros(size))
    for _ in range(rounds):
        for case, one, other in logits_of(size, rng):
            share = error(one, other) / bound
            if share > found.share:
                found, best = Edge(share, f"{size} {case}"), (one, other)
    for _ in range(4 * rounds if rounds > 1 else 1):
        near = tuple(logits + rng.normal(0, 0.01) * (rng.random(size) < 0.5) for logits in best)
        share = error(*near) / bound
        if share > found.share:
            found, best = Edge(share, found.case), near
    return found


def round_error(
    writings: Mapping[str, Written], power: Callable[[Any], Any], read: Callable[[Any], Any] = fine
) -> Callable[[Any, Any], float]:
    """Return the error of a decision: half that of a round, written in any way, against a draw written in any way.

    ``power`` is the library's exponential, ``read`` gives its arrays as finer floats.
    """

    def error(one: Any, other: Any) -> float:
        written = [(write(one), write(other)) for write in writings.values()]
        draws = [read(p) for (p, _), _ in written] + [exact_pmf(read(one))]
        laws = [
            law_of_a_round(read(p), read(q), read(coin), read(p - q))
            for (p, log_p), (q, log_q) in written
            for coin in (p / q, power(log_p - log_q))
        ]
        return max(distance(law, draw) for law in laws for draw in draws) / 2

    return error


def look_up_error(
    writings: Mapping[str, Written], cumulated: Callable[[Any], Any], read: Callable[[Any], Any] = fine
) -> Callable[[Any, Any], float]:
    """Return the error of a look-up in a cumulated pmf, as it is or divided by its end, against what is summed."""

    def error(one: Any, _: Any) -> float:
        pmfs = [write(one)[0] for write in writings.values()]
        looked_up = [(p, bounds) for p in pmfs for sums in [cumulated(p)] for bounds in (sums, sums / sums[-1])]
        return max(distance(np.diff(read(bounds), prepend=0), read(p)) for p, bounds in looked_up)

    return error
