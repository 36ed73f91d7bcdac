"""Pmfs for which floats go furthest astray, and how far: everything in units of ``rounding.of_decision``.

Logits are searched for, at random and by changing the worst that were found; among them flat ones, peaked ones, one
token against many, long tails, large offsets. What is computed from them in a dtype, by ways that are in use, is
compared with what it should be, computed in floats at least 2000 times as fine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from specverify import rounding

Written = Callable[[Any], tuple[Any, Any]]
"""logits -> pmf and its logarithm, in their dtype."""


class Edge(NamedTuple):
    """How near to its bound an error came, as a share of it, and for which case."""

    share: float
    case: str


def fine(array: Any) -> Any:
    """Return an array of stored floats in finer ones: float64, and for those the longest there are."""
    return np.asarray(array, dtype=np.longdouble if np.asarray(array).dtype == np.float64 else np.float64)


def exact_pmf(logits: Any) -> Any:
    """Return the softmax of stored logits in finer floats."""
    weights = np.exp(fine(logits) - fine(logits).max())
    return weights / weights.sum()


def distance(one: Any, other: Any) -> float:
    """Return the total variation between two pmfs, each divided by its sum."""
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def law_of_a_round(p: Any, q: Any, coin: Any, residual: Any) -> Any:
    """Return the law of one token, given stored pmfs, acceptance ratios and residuals: drawn, tossed and drawn exactly."""
    drafted = fine(q) / fine(q).sum()
    accepted = drafted * np.minimum(1, np.where(fine(q) > 0, fine(coin), 0))
    left = fine(residual) if fine(residual).sum() > 0 else fine(p)
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
    for _ in range(4 * rounds):
        near = tuple(logits + rng.normal(0, 0.01) * (rng.random(size) < 0.5) for logits in best)
        share = error(*near) / bound
        if share > found.share:
            found, best = Edge(share, found.case), near
    return found


def of_a_draw(writings: dict[str, Written], stored: Callable[[Any], Any], epsilon: float, size: int) -> float:
    """Return the bound of one decision, under a name that says what it is for."""
    return rounding.of_decision(epsilon, size)
