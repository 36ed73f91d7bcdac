"""Guarded sums: cells cover the domain, conditions stay, and a proof or refutation is checked in a known world."""

from __future__ import annotations

from fractions import Fraction

import pytest

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from property_tests.proof.test_symbolic import asked
from specverify import proof
from specverify.proof import search, sums
from specverify.proof.polynomial import ONE
from specverify.proof.solver import SignCondition
from specverify.proof.sums import BELOW_ZERO, ConditionalWeight, decide_sign
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO, Real
from specverify.proof.symbolic_tables import DRAFT, TARGET


def test_a_refutation_that_does_not_replay_raises(monkeypatch):
    monkeypatch.setattr(sums, "smallest_point", lambda *_: {0: Fraction(0), 1: Fraction(0)})
    with pytest.raises(proof.ReplayFailed, match="by enumeration"):
        proof.prove("resample-from-target", 2, 1)


def test_a_proof_that_fails_in_a_known_world_raises(monkeypatch):
    monkeypatch.setattr(search, "decide_sign", lambda *_: sums.Decided(1, None))
    with pytest.raises(proof.ReplayFailed, match="was proved and is wrong"):
        proof.prove("resample-from-target", 2, 1)


def test_a_condition_that_matters_is_not_dropped():
    """``1 where x > 0`` is not 1, ``x where x > 0`` is x: only the first needs a cell of its own."""
    tables, solver = asked()
    x = tables.row(TARGET, (0,)).entries[0]
    drawn = SignCondition(x, frozenset({POSITIVE}))

    def differs(weight, expected):
        terms = [
            ConditionalWeight(Real(None, weight), (drawn,), (drawn,)),
            ConditionalWeight(Real(None, expected.times(-1))),
        ]
        return decide_sign(terms, solver).failure

    assert differs(x, x) is None
    assert differs(x * x, x * x) is None
    failure = differs(x + ONE, x + ONE)
    assert failure.point == {0: 0}


def test_a_quotient_without_a_value_keeps_its_condition():
    """``x/(x y)`` cancels to 1/y, so ``y > 0`` still matters although it was a factor once."""
    tables, solver = asked()
    x, y = tables.row(TARGET, (0,)).entries[0], tables.row(DRAFT, (0,)).entries[0]
    drawn = tuple(SignCondition(item, frozenset({POSITIVE})) for item in (x, y))
    terms = [ConditionalWeight(Real(None, x, (y,)), drawn, drawn)]
    shifted = [*terms, ConditionalWeight(Real(None, x.times(-1), (y,)), drawn, drawn)]
    assert decide_sign(shifted, solver).failure is None
    assert decide_sign(terms, solver).failure.point is not None


def test_cells_cover_everything_and_inequalities_are_decided():
    tables, solver = asked()
    x, y = tables.row(TARGET, (0,)).entries[0], tables.row(DRAFT, (0,)).entries[0]
    more, less = (SignCondition(x - y, signs) for signs in (frozenset({POSITIVE}), frozenset({NEGATIVE, ZERO})))
    larger = [ConditionalWeight(Real(None, x), (more,)), ConditionalWeight(Real(None, y), (less,))]
    assert decide_sign([*larger, ConditionalWeight(Real(None, x.times(-1)))], solver, BELOW_ZERO).failure is None
    assert decide_sign([*larger, ConditionalWeight(Real(None, x.times(-1)))], solver).failure.point is not None
    square = (x - y) * (x - y)
    assert decide_sign([ConditionalWeight(Real(None, square))], solver, BELOW_ZERO).failure is None
    assert decide_sign([ConditionalWeight(Real(None, square.times(-1)))], solver, BELOW_ZERO).failure.point is not None
