"""Hypothesis strategies: rational pmfs, pairs of them, language models as tables, and tasks.

The distributions favour inputs that expose errors in verifiers: zeros, ties, point masses, p = q, disjoint or nested
supports, rows that depend on the whole context, end-of-sequence tokens anywhere. Everything shrinks. The parameter
``vocabulary`` of the functions is the number of tokens.

Strategies are cached by their arguments, because Hypothesis validates every new strategy, which takes longer than
drawing from it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from specverify.base.arguments import check_choice, check_integer
from specverify.laws.tables import Weights
from specverify.reference import LanguageModel, Pmf, Task, Tokens

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import DataObject, DrawFn, SearchStrategy
except ImportError as error:
    raise ImportError('strategies need Hypothesis: pip install "specverify-suite[strategies]"') from error

__all__ = ["KINDS", "pmf_pairs", "pmfs", "pmfs_of", "prompts", "table_models", "table_pairs", "tasks"]

PmfPair: TypeAlias = tuple[Pmf, Pmf]

_POSITIVE = st.integers(1, 5)


def pmfs(vocabulary: int) -> SearchStrategy[Pmf]:
    """Return a strategy of rational pmfs: object arrays ``[vocabulary]`` of ``Fraction``, with zeros and ties."""
    check_integer(vocabulary, "the vocabulary")
    return _pmfs(vocabulary)


@cache
def _pmfs(vocabulary: int) -> SearchStrategy[Pmf]:
    soft = _soft(vocabulary)
    return st.one_of(soft, _tied(vocabulary), _sparse(vocabulary), soft, _points(vocabulary)).map(_normalised)


def pmfs_of(vocabulary: int, kind: str) -> SearchStrategy[Pmf]:
    """Return a strategy of rational pmfs ``[vocabulary]`` of one kind; ``kind`` is a key of ``KINDS``.

    Raises ``ValueError`` for another kind.
    """
    check_integer(vocabulary, "the vocabulary")
    check_choice(kind, "the kind", list(KINDS))
    return KINDS[kind](vocabulary).map(_normalised)


def pmf_pairs(vocabulary: int) -> SearchStrategy[PmfPair]:
    """Return a strategy of pairs (p, q) of rational pmfs over ``vocabulary`` tokens.

    The pmfs of a pair are independent, equal, disjoint, or nested either way.
    """
    check_integer(vocabulary, "the vocabulary")
    return _pmf_pairs(vocabulary)


@cache
def _pmf_pairs(vocabulary: int) -> SearchStrategy[PmfPair]:
    rows = _pmfs(vocabulary)
    related = [st.tuples(rows, rows), rows.map(lambda p: (p, p)), _nested(vocabulary)]
    if vocabulary > 1:
        related.append(_disjoint(vocabulary))
    return st.one_of(related)


def prompts(vocabulary: int, longest: int = 4) -> SearchStrategy[Tokens]:
    """Return a strategy of non-empty prompts of at most ``longest`` tokens below ``vocabulary``."""
    check_integer(vocabulary, "the vocabulary")
    check_integer(longest, "the longest prompt")
    return st.lists(st.integers(0, vocabulary - 1), min_size=1, max_size=longest).map(tuple)


def table_models(vocabulary: int) -> SearchStrategy[LanguageModel]:
    """Return a strategy of language models ``tokens -> pmf [vocabulary]``.

    A row is drawn when its context first occurs, and depends on all tokens of the context.
    """
    return _tables(pmfs(vocabulary), "row")


def table_pairs(vocabulary: int) -> SearchStrategy[tuple[LanguageModel, LanguageModel]]:
    """Return a strategy of language models (target, draft) over ``vocabulary`` tokens.

    After each text the rows of the two models are a pair of ``pmf_pairs``.
    """
    check_integer(vocabulary, "the vocabulary")
    return _table_pairs(vocabulary)


@cache
def _table_pairs(vocabulary: int) -> SearchStrategy[tuple[LanguageModel, LanguageModel]]:
    tables = _tables(_pmf_pairs(vocabulary), "(p, q)")
    return tables.map(lambda table: ((lambda tokens: table(tokens)[0]), (lambda tokens: table(tokens)[1])))


def tasks(vocabulary: int, shortest: int = 0, longest: int = 4) -> SearchStrategy[Task]:
    """Return a strategy of tasks: the models of ``table_pairs``, a horizon, and any set of end tokens, also none.

    The models have ``vocabulary`` tokens. The horizon is between ``shortest`` and ``longest``.
    """
    check_integer(vocabulary, "the vocabulary")
    check_integer(shortest, "the shortest horizon", least=0)
    check_integer(longest, "the longest horizon", least=shortest)
    return _tasks(vocabulary, shortest, longest)


@cache
def _tasks(vocabulary: int, shortest: int, longest: int) -> SearchStrategy[Task]:
    tokens, none = _tokens(vocabulary), st.just(())
    some = st.sets(tokens, min_size=1).map(sorted).map(tuple)
    eos = st.one_of(none, none, st.tuples(tokens), some)
    return st.builds(
        lambda models, eos, horizon: Task(models[0], models[1], eos=eos, horizon=horizon),
        _table_pairs(vocabulary),
        eos,
        st.integers(shortest, longest),
    )


@cache
def _tokens(vocabulary: int) -> SearchStrategy[int]:
    return st.integers(0, vocabulary - 1)


class _RowTable:
    """A language model whose rows are drawn on demand and cached."""

    def __init__(self, data: DataObject, rows: SearchStrategy[Any], label: str) -> None:
        self._data, self._rows, self._label = data, rows, label
        self._drawn: dict[Tokens, Any] = {}

    def __call__(self, tokens: Tokens, /) -> Any:
        if tokens not in self._drawn:
            self._drawn[tokens] = self._data.draw(self._rows, label=f"{self._label} after {tokens}")
        return self._drawn[tokens]

    def __repr__(self) -> str:
        return f"<table with {len(self._drawn)} rows drawn>"


@st.composite
def _tables(draw: DrawFn, rows: SearchStrategy[Any], label: str) -> _RowTable:
    return _RowTable(draw(st.data()), rows, label)


@cache
def _soft(vocabulary: int) -> SearchStrategy[Weights]:
    return st.tuples(*[_POSITIVE] * vocabulary)


def _tied(vocabulary: int) -> SearchStrategy[Weights]:
    return st.tuples(*[st.integers(1, 2)] * vocabulary)


def _sparse(vocabulary: int) -> SearchStrategy[Weights]:
    weights = st.tuples(*[st.integers(0, 3)] * vocabulary)
    return weights.filter(any)


def _points(vocabulary: int) -> SearchStrategy[Weights]:
    return st.integers(0, vocabulary - 1).map(lambda chosen: tuple(int(token == chosen) for token in range(vocabulary)))


def _flat(vocabulary: int) -> SearchStrategy[Weights]:
    return st.just((1,) * vocabulary)


def _peaked(vocabulary: int) -> SearchStrategy[Weights]:
    place, small = st.integers(0, vocabulary - 1), st.integers(0, 1)
    rest = st.tuples(*[small] * vocabulary)
    return st.tuples(rest, place).map(lambda drawn: (*drawn[0][: drawn[1]], 1000, *drawn[0][drawn[1] + 1 :]))


KINDS: dict[str, Callable[[int], SearchStrategy[Weights]]] = {
    "soft": _soft,
    "tied": _tied,
    "zeros": _sparse,
    "flat": _flat,
    "peaked": _peaked,
    "point": _points,
}
"""Kind of pmf -> a Hypothesis strategy of its integer weights: ``soft`` all positive, ``tied`` with equal entries,
``zeros`` with entries 0, ``flat`` all equal, ``peaked`` nearly one-hot, ``point`` one-hot."""


def _disjoint(vocabulary: int) -> SearchStrategy[PmfPair]:
    mine = st.sets(_tokens(vocabulary), min_size=1, max_size=vocabulary - 1)
    return st.builds(_parted, _soft(vocabulary), mine)


def _parted(weights: Weights, mine: AbstractSet[int]) -> PmfPair:
    return _normalised(_within(weights, mine.__contains__)), _normalised(_within(weights, lambda v: v not in mine))


def _nested(vocabulary: int) -> SearchStrategy[PmfPair]:
    inner, soft = st.sets(_tokens(vocabulary), min_size=1), _soft(vocabulary)
    return st.builds(_one_in_other, inner, soft, soft, st.booleans())


def _one_in_other(inner: AbstractSet[int], small: Weights, large: Weights, as_they_are: bool) -> PmfPair:
    pair = _normalised(_within(small, inner.__contains__)), _normalised(large)
    return pair if as_they_are else pair[::-1]


def _within(weights: Weights, keep: Callable[[int], bool]) -> Weights:
    return tuple(weight if keep(token) else 0 for token, weight in enumerate(weights))


def _normalised(weights: Weights) -> Pmf:
    total = sum(weights)
    pmf = np.array([Fraction(weight, total) for weight in weights], dtype=object)
    pmf.flags.writeable = False  # a row of a table is handed out again and again
    return pmf
