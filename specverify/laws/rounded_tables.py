"""Tables of p and q that differ by rounding alone: the residual (p - q)+ may be empty although a draft is rejected.

Two kernels that compute the same softmax give such rows, and so does a model that drafts for itself. Token 0 is
impossible, and sometimes the last token, so that an argmax of NaN or a lookup past the end emits a forbidden token. The
functions return rows of ``vocabulary`` entries of the float ``dtype``, drawn by their parameter ``rng``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from specverify.laws.tables import numbers_of_row
from specverify.reference import LanguageModel, Tokens

RowPair = tuple[Any, Any]


def just_below(rng: random.Random, vocabulary: int, dtype: Any) -> RowPair:
    """Return (p, q) with an empty residual: p is one float below q at every possible token.

    The pmfs have ``vocabulary`` entries of ``dtype``, drawn by ``rng``.
    """
    q = _pmf(rng, vocabulary).astype(dtype)
    return np.nextafter(q, dtype(0)), q


def just_above(rng: random.Random, vocabulary: int, dtype: Any) -> RowPair:
    """Return (p, q) without rejections: p is one float above q at every possible token.

    The pmfs have ``vocabulary`` entries of ``dtype``, drawn by ``rng``.
    """
    q = _pmf(rng, vocabulary).astype(dtype)
    return np.where(q > 0, np.nextafter(q, dtype(1)), q), q


def two_softmaxes(rng: random.Random, vocabulary: int, dtype: Any) -> RowPair:
    """Return (p, q), one softmax computed in two ways: as a quotient, and as exp of a difference of logarithms.

    The pmfs have ``vocabulary`` entries of ``dtype``; ``rng`` draws the logits.
    """
    possible = _pmf(rng, vocabulary) > 0
    logits = np.array([rng.gauss(0, 2) for _ in range(vocabulary)], dtype=dtype)[possible]
    weights = np.exp(logits - logits.max())
    rows = np.zeros((2, vocabulary), dtype=dtype)
    rows[:, possible] = weights / weights.sum(), np.exp(logits - (logits.max() + np.log(weights.sum())))
    return rows[0], rows[1]


def below_in_float32(rng: random.Random, vocabulary: int, dtype: Any) -> RowPair:
    """Return (p, q) in ``dtype``, float64 or float32, whose float32 values are neighbours.

    Rounded to float32, p is one float below q at every possible token except one, where they are equal. In float64 they
    differ by less than a float32 spacing. ``rng`` draws the ``vocabulary`` entries.
    """
    while True:
        wanted = _pmf(rng, vocabulary).astype(np.float32)
        middle = (wanted.astype(np.float64) + np.nextafter(wanted, np.float32(0))) / 2
        p, q = middle * (1 - 2.0**-40), middle * (1 + 2.0**-40)
        rest = int(wanted.argmax())
        for row in (p, q):
            row[rest] += 1 - row.sum()
        if p.astype(np.float32)[rest] == q.astype(np.float32)[rest]:
            return p.astype(dtype), q.astype(dtype)


ROUNDED: dict[str, Callable[[random.Random, int, Any], RowPair]] = {
    shape.__name__: shape for shape in (just_below, just_above, two_softmaxes, below_in_float32)
}


def rounded_pair(shape: str, vocabulary: int, seed: int, dtype: Any) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) over ``vocabulary`` tokens as full-context tables in ``dtype``, float64 or float32.

    ``shape`` is a key of ``ROUNDED``; ``seed`` selects the rows.
    """

    @cache
    def pair(tokens: Tokens) -> RowPair:
        return ROUNDED[shape](numbers_of_row(shape, vocabulary, seed, tokens), vocabulary, dtype)

    return (lambda tokens: pair(tokens)[0]), (lambda tokens: pair(tokens)[1])


def _pmf(rng: random.Random, vocabulary: int) -> Any:
    """Return a pmf over ``vocabulary`` tokens, drawn by ``rng``, in which at least two tokens are possible.

    Token 0 has probability 0, and in half of the cases the last token too if the vocabulary has more than three tokens.
    """
    weights = [0, *(rng.randint(1, 5) for _ in range(vocabulary - 1))]
    if vocabulary > 3 and rng.random() < 0.5:
        weights[-1] = 0
    return np.array(weights) / sum(weights)
