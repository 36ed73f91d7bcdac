"""Paths over symbolic numbers: both answers of a comparison are followed once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from property_tests.proof.test_symbolic import asked
from specverify.proof.sums import ConditionalWeight, decide_sign
from specverify.proof.symbolic import NeedsNumber
from specverify.proof.symbolic_paths import PathDraws, guarded_paths
from specverify.proof.symbolic_tables import DRAFT, TARGET


def test_comparisons_follow_both_answers_once_and_no_impossible_one():
    tables, solver = asked()

    def program(run):
        (first, second) = run.pmf(TARGET, (0,))
        half = bool(first > Fraction(1, 2))
        return half, bool(second < first), bool(first * first >= 0)

    found = [path.outcome for path in guarded_paths(program, tables, solver)]
    assert found == [(True, True, True), (False, False, True)]


def test_numpy_takes_unknown_numbers_through_its_object_arrays():
    tables, solver = asked(3)

    def program(run):
        p, q = run.pmf(TARGET, (0,)), run.pmf(DRAFT, (0,))
        return np.maximum(p - q, 0).sum() + np.minimum(p, q).sum(), int(np.argmax(p)), (p == p.max()).any()

    found = list(guarded_paths(program, tables, solver))
    for path in found:
        total, _, largest = path.outcome
        assert decide_sign([ConditionalWeight(total - 1, path.conditions)], solver).failure is None
        assert largest
    assert {path.outcome[1] for path in found} == {0, 1, 2}


def test_what_has_no_value_is_refused_and_zero_divides_nothing():
    tables, solver = asked()
    run = PathDraws(tables, solver, [])
    first = run.pmf(TARGET, (0,))[0]
    with pytest.raises(NeedsNumber, match="float"):
        float(first)

    def divide(run):
        first = run.pmf(TARGET, (0,))[0]
        try:
            return 1 / first
        except ZeroDivisionError:
            return None

    outcomes = [path.outcome for path in guarded_paths(divide, *asked())]
    assert sorted(outcome is None for outcome in outcomes) == [False, True]


def test_numbers_of_another_run_are_never_equal_to_those_of_this_one():
    tables, solver = asked()
    one, other = (PathDraws(tables, solver, []).pmf(TARGET, (0,))[0] for _ in range(2))
    assert one != other
    assert {one: "remembered"}.get(other) is None
