"""A residual and an acceptance of one's own, tried on what strategies draw; a mistake is found and made small."""

import numpy as np
import pytest
from hypothesis import given, settings

from specverify.testing.strategies import calls, logits, pmf_pairs, trees, uniforms

PATIENT = settings(deadline=None, derandomize=True, max_examples=40)
"""A busy machine decides nothing, and every run draws the same."""


def my_residual(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return max(p - q, 0), normalised, and p where nothing is left."""
    excess = np.maximum(p - q, 0)
    return excess / excess.sum() if excess.sum() > 0 else p


def my_token(pmf: np.ndarray, uniform: float) -> int:
    """Return the token at ``uniform`` of the cumulative probabilities."""
    return int(np.searchsorted(np.cumsum(pmf), uniform * pmf.sum(), side="right"))


@PATIENT
@given(pmf_pairs(vocabulary=5, dtype="float64"))
def test_the_residual_is_a_pmf_where_p_exceeds_q(pair) -> None:
    """On pairs that are equal, disjoint, nested."""
    p, q = pair
    residual = my_residual(p, q)
    assert abs(residual.sum() - 1) < 1e-12
    assert ((residual > 0) <= (p > 0)).all()


@PATIENT
@given(pmf_pairs(vocabulary=4))
def test_what_is_kept_and_what_is_missing_are_p(pair) -> None:
    """In fractions, so that equal means equal."""
    p, q = pair
    kept = np.minimum(p, q)
    assert list(kept + (1 - kept.sum()) * my_residual(p, q)) == list(p)


@PATIENT
@given(calls(vocabulary=4, gamma=2, dtype="float32"), uniforms(1, dtype="float32"))
def test_no_token_of_probability_zero(call, uniform) -> None:
    """At the edges of the unit interval too: 0, and the largest number below 1."""
    for p, q in zip(call.p, call.q, strict=False):
        assert p[my_token(p.astype(np.float64), float(uniform[0]))] > 0
        assert my_residual(p, q).shape == (4,)


@PATIENT
@given(logits(vocabulary=6), trees(vocabulary=3, nodes=5, replacement=False))
def test_forbidden_tokens_and_trees(row, tree) -> None:
    """Minus infinity has probability 0; siblings drawn without replacement differ."""
    weights = np.exp(row - row.max())
    assert (weights[row == -np.inf] == 0).all()
    assert np.isfinite(weights).all()
    children = list(zip(tree.parents, tree.tokens, strict=True))
    assert len(set(children)) == len(children)


def test_a_mistake_is_found() -> None:
    """Without the rule for p = q the residual is 0 / 0."""

    @PATIENT
    @given(pmf_pairs(vocabulary=3, dtype="float64"))
    def claimed(pair) -> None:
        p, q = pair
        excess = np.maximum(p - q, 0)
        with np.errstate(invalid="ignore"):
            assert abs((excess / excess.sum()).sum() - 1) < 1e-12

    with pytest.raises(AssertionError):
        claimed()
