"""Language models as tables that a JSON file can hold: the context selects a row of rational probabilities."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from specverify.laws.tables import SHAPES, Weights, rational_pmf
from specverify.reference import LanguageModel, Pmf, Tokens, as_pmf
from specverify.vectors.vector import texts

Rows = Sequence[Sequence[str]]


def pmf_of(row: Sequence[str]) -> Pmf:
    """Return ``row``, a list of strings such as ``"3/8"``, as a pmf: an object array of ``Fraction``."""
    return as_pmf([Fraction(mass) for mass in row])


def sparse_pmf_of(row: Mapping[str, str], vocabulary: int) -> Pmf:
    """Return the pmf ``[vocabulary]`` whose positive entries are in ``row``: token id as a string -> probability."""
    pmf = np.array([Fraction(0)] * vocabulary, dtype=object)
    for token, mass in row.items():
        pmf[int(token)] = Fraction(mass)
    return pmf


def by_last_token(rows: Rows) -> LanguageModel:
    """Return the model whose pmf after a text is ``rows[t]``, where t is the last token of the text."""
    pmfs = [pmf_of(row) for row in rows]
    return lambda tokens: pmfs[tokens[-1]].copy()


def by_all_tokens(rows: Rows) -> LanguageModel:
    """Return the model whose pmf after tokens t_0, t_1, ... is row ``sum of (i + 1) t_i`` modulo the number of rows.

    The row depends on every token and its position. So an outdated, missing or shifted token selects another row.
    """
    pmfs = [pmf_of(row) for row in rows]
    return lambda tokens: pmfs[sum((i + 1) * token for i, token in enumerate(tokens)) % len(pmfs)].copy()


CONTEXTS = {"last token": by_last_token, "all tokens": by_all_tokens}
"""Name of what selects a row of the table -> the function that makes the model from the rows."""


def by_position(rows: Sequence[Pmf], start: int = 0) -> LanguageModel:
    """Return the model whose pmf depends only on the text's length: ``rows[i]`` after ``start + i`` tokens."""
    return lambda tokens: rows[len(tokens) - start]


def untied(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return random weights of p and of q over ``vocabulary`` tokens, positive integers drawn by ``rng``.

    No two weights of p are equal, and no two of q.
    """
    p, q = (tuple(rng.sample(range(2, 4 * vocabulary), vocabulary)) for _ in range(2))
    return p, q


ROWS = SHAPES | {untied.__name__: untied}
"""Name of a shape -> function that returns the weights of one row of p and of one row of q."""


def row_pairs(shape: str, vocabulary: int, number: int, seed: str) -> tuple[list[Pmf], list[Pmf]]:
    """Return ``number`` pmfs of p and ``number`` pmfs of q over ``vocabulary`` tokens, with small integer weights.

    ``shape`` is a key of ``ROWS`` and selects the kind of weights. The arguments alone determine the result; ``seed``
    is any text.
    """
    rng = random.Random(f"{shape}/{vocabulary}/{number}/{seed}")  # noqa: S311 - tables, no secrets
    pairs = [ROWS[shape](rng, vocabulary) for _ in range(number)]
    return [rational_pmf(p) for p, _ in pairs], [rational_pmf(q) for _, q in pairs]


def support_of(pmf: Pmf) -> Tokens:
    """Return the tokens of positive probability under ``pmf``, in ascending order."""
    return tuple(token for token, mass in enumerate(pmf.tolist()) if mass > 0)


def rows_of(pmfs: Sequence[Any]) -> list[list[str]]:
    """Return each of ``pmfs`` as a list of strings such as ``"3/8"``."""
    return [texts(pmf.tolist()) for pmf in pmfs]
