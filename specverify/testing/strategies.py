"""Hypothesis strategies for your own tests: difficult inputs of verifiers of speculative decoding.

    from hypothesis import given
    from specverify.testing.strategies import pmf_pairs

    @given(pmf_pairs(vocabulary=5, dtype="float32"))
    def test_my_residual(pair):
        p, q = pair
        ...

A pmf is an object array of ``Fraction`` that sums to exactly 1, or with ``dtype="float64"``, ``"float32"`` or
``"float16"`` the same pmf, each entry rounded: its sum is off by at most vocabulary / 2 units in the last place of 1.
Float arrays can be written to. The strategies favour inputs that break programs, and all of them shrink.

Needs Hypothesis: ``pip install "specverify-suite[strategies]"``; without it, ``ImportError`` names the extra. Invalid
sizes, kinds and dtypes raise ``ValueError``.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from specverify.base.arguments import check_choice, check_integer
from specverify.laws import model_strategies as laws
from specverify.laws.model_strategies import KINDS, prompts
from specverify.reference import Draft, Pmf, Tokens, chain
from specverify.reference.drafters.tree import excluding
from specverify.subjects.recorded_calls import BatchedCall, Call

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError('strategies need Hypothesis: pip install "specverify-suite[strategies]"') from error

__all__ = [
    "KINDS",
    "batches",
    "calls",
    "drafts",
    "logits",
    "parents",
    "pmf_pairs",
    "pmfs",
    "prompts",
    "trees",
    "uniforms",
]

_DTYPES: dict[str, Literal[16, 32, 64]] = {"float64": 64, "float32": 32, "float16": 16}
_EXACT_OR = (None, *_DTYPES)


def pmfs(vocabulary: int, kind: str | None = None, dtype: str | None = None) -> st.SearchStrategy[Pmf]:
    """Return a strategy for pmfs ``[vocabulary]``.

    ``kind`` is one of ``KINDS`` (None: all of them), and ``dtype`` the dtype (None: exact rationals).
    """
    check_choice(dtype, "the dtype", _EXACT_OR)
    kinds = KINDS if kind is None else (kind,)
    return st.one_of([laws.pmfs_of(vocabulary, name) for name in kinds]).map(lambda pmf: _typed(pmf, dtype))


def pmf_pairs(vocabulary: int, dtype: str | None = None) -> st.SearchStrategy[tuple[Pmf, Pmf]]:
    """Return a strategy for pairs (p, q) of pmfs ``[vocabulary]``; exact, or of ``dtype``.

    p and q are independent, equal, of disjoint supports, or one support is inside the other.
    """
    check_choice(dtype, "the dtype", _EXACT_OR)
    check_integer(vocabulary, "the vocabulary")
    return laws.pmf_pairs(vocabulary).map(lambda pair: (_typed(pair[0], dtype), _typed(pair[1], dtype)))


def logits(vocabulary: int, dtype: str = "float64") -> st.SearchStrategy[NDArray[Any]]:
    """Return a strategy for logits ``[vocabulary]`` of ``dtype``: ties, large values, minus infinity.

    At least one logit is finite.
    """
    check_integer(vocabulary, "the vocabulary")
    check_choice(dtype, "the dtype", _DTYPES)
    finite = st.one_of(st.integers(-32, 32).map(lambda n: n / 4), st.sampled_from([-1e4, 0.0, 88.0, 1e4]))
    some = st.lists(st.one_of(finite, finite, finite, st.just(-np.inf)), min_size=vocabulary, max_size=vocabulary)
    return some.filter(lambda row: max(row) > -np.inf).map(lambda row: np.array(row, dtype=dtype))


def uniforms(number: int, dtype: str = "float64") -> st.SearchStrategy[NDArray[Any]]:
    """Return a strategy for arrays of ``number`` uniforms in [0, 1), of type ``dtype``.

    Many are 0, s, 1/2 or 1 - s, where s is the spacing of the floats below 1.
    """
    check_integer(number, "the number of uniforms")
    check_choice(dtype, "the dtype", _DTYPES)
    step = float(np.finfo(dtype).epsneg)
    anywhere = st.floats(0, 1, exclude_max=True, width=_DTYPES[dtype])
    one = st.one_of(st.sampled_from([0.0, step, 0.5, 1 - step]), anywhere)
    return st.lists(one, min_size=number, max_size=number).map(lambda row: np.array(row, dtype=dtype))


def parents(nodes: int) -> st.SearchStrategy[Tokens]:
    """Return a strategy for the parents of the nodes of a tree: each is an earlier node, or -1 for the root."""
    check_integer(nodes, "the number of nodes")
    return st.tuples(*[st.integers(-1, node - 1) for node in range(nodes)])


def drafts(vocabulary: int, gamma: int, dtype: str | None = None) -> st.SearchStrategy[Draft]:
    """Return a strategy for chains of ``gamma`` drafts with their pmfs; each draft has positive probability.

    Each pmf has ``vocabulary`` entries of the dtype ``dtype``; None means exact rationals.
    """
    check_integer(gamma, "gamma")
    return trees(vocabulary, gamma, dtype=dtype, shapes=st.just(tuple(range(-1, gamma - 1)))).map(_as_chain)


def trees(
    vocabulary: int,
    nodes: int,
    *,
    replacement: bool = True,
    dtype: str | None = None,
    shapes: st.SearchStrategy[Tokens] | None = None,
) -> st.SearchStrategy[Draft]:
    """Return a strategy for trees of ``nodes`` drafts with parents from ``shapes``; None for trees of any shape.

    Each token has positive probability under its pmf. Siblings are drawn from one pmf, independently. Without
    ``replacement`` the pmf of a sibling lacks the earlier siblings, renormalised; if no mass is left in this pmf, the
    token becomes a child of the previous node instead.
    """
    check_choice(dtype, "the dtype", _EXACT_OR)
    check_integer(nodes, "the number of nodes")
    return _trees(vocabulary, parents(nodes) if shapes is None else shapes, replacement, dtype)


def calls(vocabulary: int, gamma: int, dtype: str = "float64") -> st.SearchStrategy[Call]:
    """Return a strategy for calls of a verifier: p ``[gamma + 1, vocabulary]``, q ``[gamma, vocabulary]``, drafts.

    The drafts are int64 ``[gamma]``, and ``dtype`` is that of p and q.
    """
    check_choice(dtype, "the dtype", _DTYPES)
    check_integer(gamma, "gamma")
    return _calls(vocabulary, gamma, dtype)


def batches(vocabulary: int, gamma: int, rows: int, dtype: str = "float64") -> st.SearchStrategy[BatchedCall]:
    """Return a strategy for calls of a verifier of batches: the arrays of ``calls`` with a first axis ``rows``.

    ``vocabulary``, ``gamma`` and ``dtype`` are those of ``calls``.
    """
    check_integer(rows, "the number of rows")
    return st.lists(calls(vocabulary, gamma, dtype), min_size=rows, max_size=rows).map(_stacked)


@st.composite
def _trees(
    draw: st.DrawFn, vocabulary: int, shapes: st.SearchStrategy[Tokens], replacement: bool, dtype: str | None
) -> Draft:
    tokens: list[int] = []
    result: list[int] = []
    rows: list[Pmf] = []
    first: dict[int, Pmf] = {}
    for node, wanted in enumerate(draw(shapes)):
        parent = wanted
        row = _left(first, tokens, result, parent, replacement)
        if row is None and parent in first:
            parent = node - 1
        if row is None:
            row = first[parent] = draw(laws.pmfs(vocabulary))
        tokens.append(draw(st.sampled_from([token for token in range(vocabulary) if row[token] > 0])))
        result.append(parent)
        rows.append(row)
    return Draft(tuple(tokens), tuple(result), tuple(_typed(row, dtype) for row in rows))


def _left(first: dict[int, Pmf], tokens: list[int], found: list[int], parent: int, replacement: bool) -> Pmf | None:
    """Return the pmf of the next child of ``parent``; None if there is no pmf yet or no mass is left in it.

    ``first`` maps each parent to the pmf of its first child. ``tokens`` and ``found`` are the tokens and the parents of
    the nodes so far. Without ``replacement`` the pmf lacks the tokens of earlier siblings.
    """
    if parent not in first or replacement:
        return first.get(parent)
    siblings = tuple(token for token, above in zip(tokens, found, strict=True) if above == parent)
    return excluding(first[parent], siblings)


def _as_chain(draft: Draft) -> Draft:
    return chain(draft.tokens, draft.pmfs)


@st.composite
def _calls(draw: st.DrawFn, vocabulary: int, gamma: int, dtype: str) -> Call:
    pairs = [draw(laws.pmf_pairs(vocabulary)) for _ in range(gamma)]
    tokens = [draw(st.sampled_from([token for token in range(vocabulary) if q[token] > 0])) for _, q in pairs]
    p = np.stack([_typed(row, dtype) for row in (*(p for p, _ in pairs), draw(laws.pmfs(vocabulary)))])
    q = np.stack([_typed(row, dtype) for _, row in pairs])
    return Call(p, q, np.array(tokens, dtype=np.int64), name="drawn")


def _stacked(rows: list[Call]) -> BatchedCall:
    p, q, tokens = (np.stack([row[part] for row in rows]) for part in range(3))
    return BatchedCall(p, q, tokens, name="drawn")


def _typed(pmf: Pmf, dtype: str | None) -> Pmf:
    return pmf if dtype is None else pmf.astype(np.float64).astype(dtype)
