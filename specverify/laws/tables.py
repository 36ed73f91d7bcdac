"""Table language models: rational, dependent on the whole context, in many shapes that expose faults.

A model whose rows do not depend on the context hides index errors, so each row is drawn from a generator seeded by all
tokens so far. A shape is a pair (p, q), because a verifier depends on the relation of the two. The function of a shape
returns the integer weights of one row of p and one of q, over ``vocabulary`` tokens, drawn by ``rng``.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import numpy as np

from specverify.reference import LanguageModel, Pmf, Tokens, one_hot, softmax
from specverify.reference import top_k as keep_top_k

Weights = tuple[int, ...]


def rational_pmf(weights: Weights) -> Pmf:
    """Return integer weights as a pmf: an object array of ``Fraction``."""
    total = sum(weights)
    return np.array([Fraction(weight, total) for weight in weights], dtype=object)


def generic(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of p and q over ``vocabulary`` tokens, drawn by ``rng``; all tokens are possible."""
    return _positive(rng, vocabulary), _positive(rng, vocabulary)


def peaked(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of p and q, each with one heavy token; in three of four cases the token is the same.

    Entropy is then low, and many drafts in a row are accepted. ``rng`` draws the weights ``[vocabulary]``.
    """
    heavy = rng.randrange(vocabulary)
    other = heavy if rng.random() < 0.75 else rng.randrange(vocabulary)
    return _heavy(rng, vocabulary, heavy), _heavy(rng, vocabulary, other)


def zeros(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of p and q, drawn by ``rng``, with about half of the ``vocabulary`` entries 0, independently."""
    return _sparse(rng, vocabulary), _sparse(rng, vocabulary)


def disjoint(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of p and q with disjoint supports: every draft must be rejected.

    ``rng`` draws the weights ``[vocabulary]``.
    """
    side = [rng.random() < 0.5 for _ in range(vocabulary)]
    side[rng.randrange(vocabulary)] ^= len(set(side)) == 1
    weights = _positive(rng, vocabulary)
    return tuple(w * s for w, s in zip(weights, side, strict=True)), tuple(
        w * (not s) for w, s in zip(weights, side, strict=True)
    )


def equal(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return equal weights ``[vocabulary]`` of p and q, drawn by ``rng``: no draft may be rejected."""
    weights = _sparse(rng, vocabulary)
    return weights, weights


def point_target(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of a one-hot p (temperature 0) and a q in which all tokens are possible.

    ``rng`` draws the weights ``[vocabulary]``.
    """
    return _point(rng, vocabulary), _positive(rng, vocabulary)


def point_draft(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of a p in which all tokens are possible, and of a one-hot q (a deterministic drafter).

    ``rng`` draws the weights ``[vocabulary]``.
    """
    return _positive(rng, vocabulary), _point(rng, vocabulary)


def ties(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights of p and q that are uniform or have two values, so that the argmax is tied.

    ``rng`` draws the weights ``[vocabulary]``.
    """
    return _tied(rng, vocabulary), _tied(rng, vocabulary)


def nearly_equal(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights ``[vocabulary]`` of p and q, drawn by ``rng``, that differ by at most 2^-30, at two tokens.

    A rule that confuses p with q has another exact law, but nearly the same law in float32.
    """
    weights = [weight << 30 for weight in _positive(rng, vocabulary)]
    more, less = rng.sample(range(vocabulary), 2)
    moved = [weight + (token == more) - (token == less) for token, weight in enumerate(weights)]
    return tuple(weights), tuple(moved)


def confident(rng: random.Random, vocabulary: int) -> tuple[Weights, Weights]:
    """Return weights ``[vocabulary]`` of p and q, drawn by ``rng``; one of the two is nearly certain of one token.

    Code may test no draft of which a model is sure enough. The nearly certain token has probability 0.94 to 0.998 if
    there are two tokens.
    """
    sure, heavy = rng.randrange(vocabulary), 2 ** rng.choice((4, 6, 9))
    certain = tuple(heavy if token == sure else 1 for token in range(vocabulary))
    other = _positive(rng, vocabulary)
    return (certain, other) if rng.random() < 0.5 else (other, certain)


SHAPES: dict[str, Callable[[random.Random, int], tuple[Weights, Weights]]] = {
    shape.__name__: shape for shape in (generic, peaked, zeros, disjoint, equal, point_target, point_draft, ties)
}


_SHAPES_OF_FEW = {shape.__name__: shape for shape in (nearly_equal, confident)}
"""Shapes of a few scenarios only."""


def numbers_of_row(shape: str, vocabulary: int, seed: int, tokens: Tokens) -> random.Random:
    """Return the seeded random generator from which the rows of p and q after ``tokens`` are drawn.

    ``shape``, ``vocabulary`` and ``seed`` are those of ``table_pair``. The seed of the generator contains the tokens as
    Python integers, so a text of NumPy integers has the same rows as the equal text of Python integers.
    """
    return random.Random(f"{shape}/{vocabulary}/{seed}/{tuple(map(int, tokens))}")


def table_pair(shape: str, vocabulary: int, seed: int) -> tuple[LanguageModel, LanguageModel]:
    """Return (target, draft) over ``vocabulary`` tokens as full-context rational tables.

    ``shape`` is the name of a function of this module that returns the weights of a row, such as "peaked"; ``seed``
    selects the rows.
    """
    rows = SHAPES[shape] if shape in SHAPES else _SHAPES_OF_FEW[shape]

    @cache
    def pair(tokens: Tokens) -> tuple[Pmf, Pmf]:
        p, q = rows(numbers_of_row(shape, vocabulary, seed, tokens), vocabulary)
        return rational_pmf(p), rational_pmf(q)

    return (lambda tokens: pair(tokens)[0]), (lambda tokens: pair(tokens)[1])


def softmax_table(
    vocabulary: int, temperature: float, seed: int, spread: float = 2.0, top_k: int | None = None
) -> LanguageModel:
    """Return a full-context float64 table over ``vocabulary`` tokens: softmax of random normal logits.

    The logits have standard deviation ``spread`` and are divided by ``temperature``; ``seed`` selects them. ``top_k``
    truncates each row; None does not.
    """

    @cache
    def row(tokens: Tokens) -> Pmf:
        key = [seed, vocabulary, *tokens]
        logits = np.random.default_rng(key).normal(0, spread, vocabulary) / temperature
        pmf = softmax(logits)
        return pmf if top_k is None else keep_top_k(pmf, top_k)

    return row


def mixed_with(target: LanguageModel, other: LanguageModel, share: float) -> LanguageModel:
    """Return a drafter that resembles the target: a mixture of the rows of two models.

    The rows are (1 - ``share``) p + ``share`` r, with p of ``target`` and r of ``other``.
    """

    @cache
    def row(tokens: Tokens) -> Pmf:
        return (1 - share) * target(tokens) + share * other(tokens)

    return row


def as_dtype(model: LanguageModel, dtype: Any) -> LanguageModel:
    """Return the model with rows converted to ``dtype`` and cached."""
    return lru_cache(maxsize=None)(lambda tokens: np.array(model(tokens), dtype=dtype))


def as_float64(model: LanguageModel) -> LanguageModel:
    """Return the model with float64 rows."""
    return as_dtype(model, np.float64)


def unchangeable(model: LanguageModel) -> LanguageModel:
    """Return the model with cached, read-only rows.

    A write into a row raises an error in NumPy. A write that bypasses NumPy, such as through a tensor that shares its
    memory, raises ``ValueError`` when the row is next requested.
    """
    rows: dict[Tokens, tuple[Pmf, bytes]] = {}

    def keep(tokens: Tokens) -> Pmf:
        pmf = model(tokens).copy()
        pmf.flags.writeable = False
        rows[tokens] = pmf, pmf.tobytes()
        return pmf

    def row(tokens: Tokens) -> Pmf:
        if tokens not in rows:
            keep(tokens)
        pmf, content = rows[tokens]
        if pmf.dtype != object:
            _torch_warned()
            if pmf.tobytes() != content:
                keep(tokens)
                raise ValueError(
                    f"the pmf after {tokens} was modified by the caller after it was returned, and is requested again"
                )
        return pmf

    return row


@cache
def _torch_warns(torch: Any) -> None:
    """Make torch emit its one-time warning about read-only arrays now, and discard it.

    So the warning does not appear when a subject converts a read-only row.
    """
    row = np.zeros(1)
    row.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.from_numpy(row)


def _torch_warned() -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        _torch_warns(torch)


def one_hot_rows(model: LanguageModel) -> LanguageModel:
    """Return the model at temperature 0: all mass on the first largest entry."""

    def row(tokens: Tokens) -> Any:
        pmf = model(tokens)
        return one_hot(int(np.argmax(pmf)), pmf)

    return row


def _positive(rng: random.Random, vocabulary: int) -> Weights:
    return tuple(rng.randint(1, 5) for _ in range(vocabulary))


def _heavy(rng: random.Random, vocabulary: int, token: int) -> Weights:
    return tuple(rng.randint(8, 20) if index == token else 1 for index in range(vocabulary))


def _sparse(rng: random.Random, vocabulary: int) -> Weights:
    weights = [rng.choice((0, 0, 1, 2, 3)) for _ in range(vocabulary)]
    weights[rng.randrange(vocabulary)] = rng.randint(1, 3)
    return tuple(weights)


def _point(rng: random.Random, vocabulary: int) -> Weights:
    chosen = rng.randrange(vocabulary)
    return tuple(int(token == chosen) for token in range(vocabulary))


def _tied(rng: random.Random, vocabulary: int) -> Weights:
    return tuple(rng.choice((1, 2)) for _ in range(vocabulary)) if rng.random() < 0.5 else (1,) * vocabulary
