"""The arithmetic under the proofs: polynomials, unknown numbers, guarded sums, and the same told a second way."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.laws.paths import paths

z3 = pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from specverify import proof  # noqa: E402 - after the skip
from specverify.proof.polynomial import ONE, Polynomial, common_monomial, primitive, quotient  # noqa: E402
from specverify.proof.proved_subject import find_rule  # noqa: E402
from specverify.proof.solver import Feasibility, SignCondition, spoken  # noqa: E402
from specverify.proof.statements import STATEMENTS, RoundStart  # noqa: E402
from specverify.proof.sums import BELOW_ZERO, ConditionalWeight, decide_sign  # noqa: E402
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO, NeedsNumber, Real  # noqa: E402
from specverify.proof.symbolic_paths import PathDraws, guarded_paths  # noqa: E402
from specverify.proof.symbolic_tables import DRAFT, TARGET, UnknownTables, UnknownWorld, any_model  # noqa: E402

PROVED, REFUTED, UNKNOWN = proof.ProofStatus


def asked(vocabulary=2, seconds=60):
    """Return fresh tables and a solver for them."""
    tables = UnknownTables(vocabulary)
    return tables, Feasibility(tables.axioms, time.perf_counter() + seconds)


def values_of(tables, model):
    """Return the value of every unknown in a known world."""
    kinds = {TARGET: model.target, DRAFT: model.draft}
    return {
        number: value
        for row in tables.rows.values()
        if row.kind in kinds
        for number, value in zip(row.unknowns, kinds[row.kind][row.text], strict=False)
    }


# Polynomials

polynomials = st.dictionaries(
    st.lists(st.integers(0, 3), max_size=3).map(lambda numbers: tuple(sorted(numbers))),
    st.fractions(-3, 3, max_denominator=4).filter(bool),
    max_size=4,
).map(Polynomial)
points = st.fixed_dictionaries({number: st.fractions(-2, 2, max_denominator=5) for number in range(4)})


@given(polynomials, polynomials, points)
def test_polynomials_compute_as_their_values_do(one, other, point):
    assert (one + other).at(point) == one.at(point) + other.at(point)
    assert (one - other).at(point) == one.at(point) - other.at(point)
    assert (one * other).at(point) == one.at(point) * other.at(point)
    assert not (one - one)


@given(polynomials, polynomials.filter(bool), polynomials)
def test_division_finds_factors_and_nothing_else(one, other, third):
    assert quotient(one * other, other) == one
    divided = quotient(third, other)
    assert divided is None or divided * other == third


@given(polynomials.filter(bool))
def test_the_primitive_part_has_coprime_integers_and_a_positive_leading_coefficient(polynomial):
    content, rest = primitive(polynomial)
    assert rest.times(content) == polynomial
    assert rest.terms[rest.leading] > 0
    assert primitive(rest) == (1, rest)
    shared = Polynomial({common_monomial(polynomial): 1})
    assert quotient(polynomial, shared) is not None


# Numbers of a run


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


# Symbolic against ordinary enumeration


@pytest.mark.parametrize(
    ("name", "vocabulary", "gamma"),
    [("speculative-sampling", 3, 1), ("block-verification", 2, 2), ("rsd", 3, 1), ("lenience", 3, 1), ("nasd", 2, 1)],
)
def test_at_a_known_world_the_guarded_sum_is_the_enumerated_law(name, vocabulary, gamma):
    tables, solver = asked(vocabulary)
    rule, place = find_rule(name, gamma), RoundStart((0, 0), gamma + 1)
    law_of_a_round = STATEMENTS["law"]
    found = list(
        guarded_paths(
            lambda run: list(law_of_a_round.left(rule, UnknownWorld(tables, run), run, place)), tables, solver
        )
    )
    for seed in range(4):
        model = any_model(tables, random.Random(seed))
        point = values_of(tables, model)
        law, expected = defaultdict(Fraction), defaultdict(Fraction)
        for path in found:
            if all(condition.met(point) for condition in path.conditions):
                for outcome, share in path.outcome:
                    law[outcome] += value_at(path.weight * share, point)
        for path in paths(lambda draws, model=model: list(law_of_a_round.left(rule, model, draws, place))):
            for outcome, share in path.outcome:
                expected[outcome] += path.weight * share
        assert {x: mass for x, mass in law.items() if mass} == {x: mass for x, mass in expected.items() if mass}
        assert sum(law.values()) == 1


def value_at(value, point):
    """Return a number of a run at a point."""
    if not isinstance(value, Real):
        return Fraction(value)
    below = Fraction(1)
    for factor in value.denominators:
        below *= factor.at(point)
    return value.numerator.at(point) / below


# Sums


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


# A second encoding


def one_step(vocabulary, replace_by_target=False):
    """Return z3's question for a p and q at which one speculative step, in closed form, does not have the law p."""
    p, q = ([z3.Real(f"{name}{token}") for token in range(vocabulary)] for name in "pq")
    kept = [z3.If(mass < other, mass, other) for mass, other in zip(p, q, strict=True)]
    owed = [mass - least for mass, least in zip(p, kept, strict=True)]
    total, rejected = z3.Sum(owed), 1 - z3.Sum(kept)
    law = [
        least + rejected * (mass if replace_by_target else z3.If(total > 0, over / total, mass))
        for mass, least, over in zip(p, kept, owed, strict=True)
    ]
    solver = z3.Solver()
    solver.add([entry >= 0 for entry in (*p, *q)] + [z3.Sum(p) == 1, z3.Sum(q) == 1])
    solver.add(z3.Or([mass != wanted for mass, wanted in zip(law, p, strict=True)]))
    return solver


@pytest.mark.parametrize("vocabulary", [2, 3])
def test_the_closed_form_of_one_step_says_the_same(vocabulary):
    assert one_step(vocabulary).check() == z3.unsat
    assert one_step(vocabulary, replace_by_target=True).check() == z3.sat


@pytest.mark.parametrize(
    ("name", "expected"),
    [("speculative-sampling", PROVED), ("sample-and-match", PROVED), ("mutant:residual-from-target", REFUTED)],
)
def test_the_guarded_sum_in_z3_alone_says_the_same(name, expected):
    """No cells, no polynomial identities, no conditions left out: one nonlinear question for each text."""
    tables, solver = asked()
    rule, place, law_of_a_round = find_rule(name, 1), RoundStart((0,), 2), STATEMENTS["law"]
    masses = defaultdict(list)
    for side, program in ((1, law_of_a_round.left), (-1, law_of_a_round.right)):
        for path in guarded_paths(
            lambda run, program=program: list(program(rule, UnknownWorld(tables, run), run, place)), tables, solver
        ):
            met = z3.And([condition_in_z3(condition) for condition in path.conditions])
            for text, share in path.outcome:
                masses[text].append(z3.If(met, side * number_in_z3(path.weight * share), z3.RealVal(0)))
    axioms = [condition_in_z3(axiom) for row in tables.rows.values() for axiom in row.axioms]
    answers = []
    for terms in masses.values():
        whole = z3.Solver()
        whole.add(axioms)
        whole.add(z3.Sum(terms) != 0)
        answers.append(whole.check())
    assert z3.unknown not in answers
    assert (z3.sat in answers) == (expected is REFUTED)
    assert proof.prove(name, 2, 1).status is expected


def condition_in_z3(condition):
    """Return the condition, written anew."""
    value = spoken(condition.polynomial)
    return z3.Or([{NEGATIVE: value < 0, ZERO: value == 0, POSITIVE: value > 0}[sign] for sign in condition.signs])


def number_in_z3(value):
    """Return a number of a run with its division."""
    if not isinstance(value, Real):
        return z3.RealVal(str(Fraction(value)))
    below = z3.RealVal(1)
    for factor in value.denominators:
        below = below * spoken(factor)
    return spoken(value.numerator) / below
