"""The arithmetic under the proofs: polynomials, unknown numbers, guarded sums, and the same told a second way."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.laws.paths import paths

z3 = pytest.importorskip("z3", reason='proofs need z3: pip install "specverify-suite[proof]"')

from specverify import proof  # noqa: E402 - after the skip
from specverify.proof.polynomial import Polynomial  # noqa: E402
from specverify.proof.proved_subject import find_rule  # noqa: E402
from specverify.proof.solver import Feasibility, z3_term  # noqa: E402
from specverify.proof.statements import STATEMENTS, RoundStart  # noqa: E402
from specverify.proof.symbolic import NEGATIVE, POSITIVE, ZERO, Real  # noqa: E402
from specverify.proof.symbolic_paths import guarded_paths  # noqa: E402
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
    value = z3_term(condition.polynomial)
    return z3.Or([{NEGATIVE: value < 0, ZERO: value == 0, POSITIVE: value > 0}[sign] for sign in condition.signs])


def number_in_z3(value):
    """Return a number of a run with its division."""
    if not isinstance(value, Real):
        return z3.RealVal(str(Fraction(value)))
    below = z3.RealVal(1)
    for factor in value.denominators:
        below = below * z3_term(factor)
    return z3_term(value.numerator) / below
