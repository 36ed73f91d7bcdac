"""What the strategies for other people's tests draw: their shapes, their dtypes, and the cases they promise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

from reference import total_variation
from specverify.testing.strategies import batches, calls, drafts, logits, parents, pmf_pairs, pmfs, trees, uniforms

FEW = settings(max_examples=20)
QUIET = settings(database=None, derandomize=True, max_examples=2000, phases=(Phase.generate,))


@FEW
@given(pmfs(4), pmfs(4, dtype="float32"), pmf_pairs(3, dtype="float16"))
def test_pmfs_are_exact_or_of_a_dtype(exact, single, pair):
    assert exact.dtype == object
    assert exact.sum() == Fraction(1)
    assert single.dtype == np.float32
    assert single.flags.writeable
    assert abs(float(single.astype(np.float64).sum()) - 1) <= 4 * 2.0**-24
    assert {row.dtype for row in pair} == {np.dtype("float16")}


@pytest.mark.parametrize(
    ("kind", "is_so"),
    [
        ("soft", lambda row: min(row) > 0),
        ("tied", lambda row: len(set(row)) <= 2),
        ("zeros", lambda row: True),
        ("flat", lambda row: set(row) == {Fraction(1, 5)}),
        ("peaked", lambda row: max(row) >= Fraction(1000, 1004)),
        ("point", lambda row: sorted(row) == [0, 0, 0, 0, 1]),
    ],
)
def test_a_kind_is_what_it_is_called(kind, is_so):
    @FEW
    @given(pmfs(5, kind))
    def holds(row):
        assert row.shape == (5,)
        assert is_so(row)

    holds()


@pytest.mark.parametrize(
    ("strategy", "case"),
    [
        (pmfs(4), lambda row: 0 in row),
        (pmfs(4), lambda row: max(row) == 1),
        (pmfs(4), lambda row: len(set(row)) == 1),
        (pmf_pairs(3), lambda pair: list(pair[0]) == list(pair[1])),
        (pmf_pairs(3), lambda pair: total_variation(*pair) == 1),
        (logits(3), lambda row: -np.inf in row),
        (logits(3), lambda row: len(set(row)) < 3),
        (uniforms(1), lambda row: row[0] == 0),
        (uniforms(1, "float32"), lambda row: row[0] == np.nextafter(np.float32(1), np.float32(0))),
        (uniforms(1, "float16"), lambda row: row[0] == np.nextafter(np.float16(1), np.float16(0))),
        (parents(4), lambda tree: tree == (-1, -1, 0, 0)),
        (trees(3, 4), lambda tree: len(set(zip(tree.parents, tree.tokens, strict=True))) < 4),
    ],
)
def test_a_case_that_is_promised_is_drawn(strategy, case):
    find(strategy, case, settings=QUIET)


@FEW
@given(calls(4, 2, "float32"), batches(3, 2, rows=2), uniforms(3, "float16"), logits(5, "float16"))
def test_arrays_have_the_shapes_and_dtypes_that_are_told(call, batch, coins, row):
    assert (call.p.shape, call.q.shape, call.draft_tokens.shape) == ((3, 4), (2, 4), (2,))
    assert (call.p.dtype, call.draft_tokens.dtype) == (np.float32, np.int64)
    assert all(q[token] > 0 for q, token in zip(call.q, call.draft_tokens, strict=True))
    assert (batch.p.shape, batch.q.shape, batch.draft_tokens.shape) == ((2, 3, 3), (2, 2, 3), (2, 2))
    assert coins.dtype == row.dtype == np.float16
    assert ((coins >= 0) & (coins < 1)).all()
    assert np.isfinite(row).any()


@FEW
@given(drafts(3, 3), trees(3, 5, replacement=False), trees(3, 5, dtype="float64"))
def test_drafts_are_possible_where_they_stand(chain, without, independent):
    assert chain.parents == (-1, 0, 1)
    for tree in (chain, without, independent):
        assert all(row[token] > 0 for token, row in zip(tree.tokens, tree.pmfs, strict=True))
        assert all(-1 <= parent < node for node, parent in enumerate(tree.parents))
    siblings = list(zip(without.parents, without.tokens, strict=True))
    assert len(set(siblings)) == len(siblings)
    rows = dict(zip(independent.parents, independent.pmfs, strict=True))
    assert all((rows[up] == row).all() for up, row in zip(independent.parents, independent.pmfs, strict=True))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: pmfs(0), "vocabulary"),
        (lambda: pmfs(3, "sharp"), "the kind is 'sharp', expected one of 'soft'"),
        (lambda: pmfs(3, dtype="bfloat16"), "the dtype is 'bfloat16', expected one of None, 'float64'"),
        (lambda: uniforms(0), "the number of uniforms"),
        (lambda: calls(3, 0), "gamma"),
        (lambda: batches(3, 1, 0), "the number of rows"),
        (lambda: trees(3, 0), "the number of nodes"),
    ],
)
def test_what_cannot_be_drawn_is_said(call, said):
    with pytest.raises(ValueError, match=said):
        call()
