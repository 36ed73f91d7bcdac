"""Random chains of operations on uniforms that end in a comparison, in NumPy and by the same names in torch."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import NamedTuple

import numpy as np

from specverify.intercept.cpython import patches
from specverify.intercept.everywhere import answered_everywhere
from specverify.laws.enumeration import program_law

ROWS, FAR = 1_000_000, 7
"""Seven standard deviations of one of at most 40 times 8 counts are less likely than 1e-8."""
REFUSED = {0, 5, 21, 31, 32, 36}
"""Of forty chains those that are refused: values at a place of an order that are joined, bounds at those of a clamp."""
STEPS = {
    "scale": lambda x, c: x * (3 * c - 1),
    "shift": lambda x, c: np.add(x, c - 0.5),
    "minus the logarithm": lambda x, c: -np.log(np.clip(x, 1e-12, None)),
    "exp": lambda x, c: np.exp(x * c),
    "sqrt": lambda x, c: np.sqrt(np.maximum(x, 0)),
    "clip": lambda x, c: np.clip(x, 0.2, 0.2 + c),
    "minimum": np.minimum,
    "reciprocal": lambda x, c: 1 / (np.abs(x) + 0.5),
    "floor": lambda x, c: np.floor(x * 4),
    "ceil": lambda x, c: np.ceil(x * 3 - c),
    "round": lambda x, c: np.round(x * 3 + c),
    "trunc": lambda x, c: np.trunc(x * 4 - 2),
    "remainder": lambda x, c: (x * 3 - c) % 1.0,
    "fmod": lambda x, c: np.fmod(x * 3 - c, 1.0),
    "abs": lambda x, c: np.abs(x - c),
    "where": lambda x, c: np.where(x < c, 2 * x, 1 - x),
    "select": lambda x, c: np.select([x < c / 2, x < c], [x * 2, x + 0.1], 0.3),
    "sort": lambda x, c: np.sort(x, axis=-1),
    "cumsum": lambda x, c: np.cumsum(x, axis=-1),
    "cumprod": lambda x, c: np.cumprod(x, axis=-1),
    "largest so far": lambda x, c: np.maximum.accumulate(x, axis=-1),
    "flip": lambda x, c: np.flip(x, -1),
    "sum": lambda x, c: x.sum(-1, keepdims=True),
    "max": lambda x, c: np.max(x, axis=-1, keepdims=True),
    "copysign": lambda x, c: np.copysign(x - c, 1.0),
    "logaddexp": np.logaddexp,
    "sign": lambda x, c: np.sign(x - c),
    "heaviside": lambda x, c: np.heaviside(x - c, 0.5),
    "nan_to_num": lambda x, c: np.nan_to_num(np.where(x < c, np.nan, x), nan=0.4),
    "floor_divide": lambda x, c: x // (0.1 + c / 2),
    "whole": lambda x, c: (x * 5).astype(np.int64),
    "times a mask": lambda x, c: x * (x < c),
    "log1p": lambda x, c: np.log1p(np.abs(x)),
    "power": lambda x, c: np.power(np.abs(x), c + 0.3),
    "concatenate": lambda x, c: np.concatenate([x, np.full((*x.shape[:-1], 1), c)], axis=-1),
    "stack": lambda x, c: np.stack([x, x + c]).max(axis=0),
}
RELATIONS = {"<": lambda x, c: x < c, "<=": lambda x, c: x <= c, ">": lambda x, c: c < x}
ENDS = {
    "each": lambda mask: mask,
    "all": lambda mask: np.all(mask, axis=-1, keepdims=True),
    "any": lambda mask: np.any(mask, axis=-1, keepdims=True),
    "count": lambda mask: np.sum(mask, axis=-1, keepdims=True),
    "first": lambda mask: np.argmax(mask, axis=-1)[..., None],
    "kept": lambda mask: np.cumprod(mask, axis=-1).sum(axis=-1, keepdims=True),
}


class Composition(NamedTuple):
    """A chain of operations on one to three uniforms; each operation has a number as its parameter."""

    uniforms: int
    steps: tuple[tuple[str, float], ...]
    relation: str
    end: str
    share: float
    """Where the bound is to lie among the values."""


def composition(seed):
    """Return the random chain of a seed."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 5))
    steps = tuple(zip(rng.choice(sorted(STEPS), count).tolist(), rng.random(count).round(3).tolist(), strict=True))
    relation, end = str(rng.choice(sorted(RELATIONS))), str(rng.choice(sorted(ENDS)))
    return Composition(int(rng.integers(1, 4)), steps, relation, end, float(rng.uniform(0.1, 0.9)))


def values(chain, uniforms, steps=STEPS):
    """Return the result of a chain's operations on uniforms ``[..., number]``."""
    for name, number in chain.steps:
        uniforms = steps[name](uniforms, number)
    return uniforms


def bound_of(chain, steps=STEPS, like=np.asarray):
    """Return the number that a chain's values are compared with.

    It is near a quantile of the values and has two digits, so that it may be equal to one of them.
    """
    found = values(chain, like(np.random.default_rng(1).random((10_001, chain.uniforms))), steps)
    return round(float(np.quantile(np.asarray(found).astype(float), chain.share)), 2)


def answered_law(compute):
    """Return the law of a row of numbers that ``compute`` derives from answered draws."""

    def program(draws):
        with answered_everywhere(draws):
            return tuple(int(number) for number in compute().tolist())

    return dict(patches.again(partial(program_law, program)).probabilities)


def furthest(law, rows):
    """Return the largest deviation of the counts of rows from a law, in standard deviations."""
    counts, total = Counter(map(tuple, np.asarray(rows).astype(int).tolist())), len(rows)
    away = [
        abs(float(law.get(row, 0)) - counts[row] / total) / math.sqrt(max(float(law.get(row, 0)), 1 / total) / total)
        for row in {*law, *counts}
    ]
    return max(away)
