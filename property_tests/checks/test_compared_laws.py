"""A law that was enumerated in floats against one that is expected: equal, held, too coarse to say, or refuted."""

from __future__ import annotations

from contextlib import nullcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specverify.checks import Conditions
from specverify.checks.compared_laws import MOST_PROBES, compare_laws, enumerated
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.law import Law, rounding_bound
from specverify.laws.paths import PROBES
from specverify.laws.rounding import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    LARGEST,
    Rounding,
    after,
    allowed,
    of_enumeration,
    worst,
)
from specverify.subjects.subject import EngineProgram

EXPECTED = {(0,): 0.5, (1,): 0.5}
FINE = Rounding(FLOAT32, decisions=6, support=3)
COARSE = FINE._replace(epsilon=BFLOAT16)
BETWEEN, FAR_BETWEEN = FINE._replace(within=2.0**-12), FINE._replace(within=2.0**-9)


def law_at(distance, rounding=FINE, runs=20, missing=0.0):
    """Return a law at a total variation from the expected one."""
    return Law({(0,): 0.5 + distance, (1,): 0.5 - distance}, missing, runs, decisions=6, rounding=rounding)


def verdict(law):
    found = compare_laws(law, EXPECTED, "the target's")
    return "refuted" if found.refuted else "unknown" if found.unknown else "holds"


ENUMERATED, FINE_BOUND, COARSE_BOUND = (
    of_enumeration(FINE, 20),
    rounding_bound(law_at(0)),
    rounding_bound(law_at(0, COARSE)),
)


@pytest.mark.parametrize(
    ("law", "expected", "shown"),
    [
        (law_at(0.0), "holds", ENUMERATED),
        (law_at(ENUMERATED / 5), "holds", ENUMERATED),
        (law_at(ENUMERATED / 2), "holds", FINE_BOUND),
        (law_at(FINE_BOUND / 5), "holds", FINE_BOUND),
        (law_at(FINE_BOUND / 3), "unknown", FINE_BOUND),
        (law_at(FINE_BOUND * 0.999), "unknown", FINE_BOUND),
        (law_at(FINE_BOUND * 1.001), "refuted", FINE_BOUND),
        (law_at(0.4), "refuted", FINE_BOUND),
        (law_at(0.0, COARSE), "holds", ENUMERATED),
        (law_at(ENUMERATED, COARSE), "holds", FINE_BOUND),
        (law_at(FINE_BOUND / 5, COARSE), "holds", FINE_BOUND),
        (law_at(FINE_BOUND / 3, COARSE), "unknown", COARSE_BOUND),
        (law_at(COARSE_BOUND / 5, COARSE), "unknown", COARSE_BOUND),
        (law_at(COARSE_BOUND * 1.001, COARSE), "refuted", COARSE_BOUND),
        (law_at(0.0, BETWEEN), "holds", FINE_BOUND + BETWEEN.within),
        (law_at(2.0**-15, BETWEEN), "holds", FINE_BOUND + BETWEEN.within),
        (law_at(2.0**-13, BETWEEN), "unknown", FINE_BOUND + BETWEEN.within),
        (law_at(2.0**-11, BETWEEN), "refuted", FINE_BOUND + BETWEEN.within),
        (law_at(0.0, FAR_BETWEEN), "unknown", FINE_BOUND + FAR_BETWEEN.within),
        (law_at(0.2, FAR_BETWEEN), "refuted", FINE_BOUND + FAR_BETWEEN.within),
    ],
)
def test_every_zone(law, expected, shown):
    assert verdict(law) == expected
    assert compare_laws(law, EXPECTED, "the target's").figures["rounding"] == pytest.approx(shown)


def test_the_zones_are_apart():
    assert 1000 * ENUMERATED < FINE_BOUND < LARGEST < COARSE_BOUND < 0.5


def test_what_may_be_rounding_says_how_much_and_what_float64_would_leave():
    statement = compare_laws(law_at(1e-4, COARSE), EXPECTED, "the target's").statement
    fine = rounding_bound(law_at(0, COARSE._replace(epsilon=FLOAT64)), FLOAT64)
    assert statement == (
        f"TV = 0.0001 from the target's may be rounding: in bfloat16 with a spacing of 0.008 at 1, "
        f"rounding in this subject can cause a TV of up to {COARSE_BOUND:.1g}; in float64 up to {fine:.1g}. "
        "Let it compute in float64 where it is examined, or let samples decide (sampled=True)"
    )


def test_probability_that_was_not_enumerated_holds_nothing_and_excuses_nothing():
    part = law_at(0.0)._replace(probabilities={(0,): 0.5, (1,): 0.25}, missing=0.25)
    assert verdict(part) == "unknown"
    assert "probability 0.25 was not enumerated within 20 runs" in compare_laws(part, EXPECTED, "").statement
    assert verdict(part._replace(probabilities={(0,): 0.5}, missing=0.5)) == "unknown"
    assert verdict(part._replace(probabilities={(0,): 0.75}, missing=0.25)) == "refuted"


@pytest.mark.parametrize(
    ("mass", "expected"), [(Fraction(1, 2), "holds"), (Fraction(1, 2) + Fraction(1, 10**30), "refuted")]
)
def test_rationals_are_equal_or_not(mass, expected):
    law = Law({(0,): mass, (1,): 1 - mass}, 0, 2, 1)
    found = compare_laws(law, {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}, "the target's")
    assert (found.rational, found.figures["rounding"]) == (True, 0)
    assert (found.refuted, found.unknown) == (expected == "refuted", False)


roundings = st.builds(
    Rounding,
    epsilon=st.sampled_from([FLOAT64, FLOAT32, FLOAT16, BFLOAT16]),
    decisions=st.integers(0, 200),
    cells=st.integers(0, 10**6),
    uniforms=st.integers(0, 20),
    support=st.integers(1, 2**18),
    within=st.sampled_from([0.0, 1e-15, 1e-6, 1e-3]),
)


@given(roundings, st.floats(-20, -0.31), st.integers(1, 200_000), st.sampled_from([0.0, 1e-18, 1e-3]))
def test_nothing_holds_by_a_bound_that_allows_it_or_everything(rounding, exponent, runs, missing):
    law = law_at(10**exponent, rounding, runs, missing)
    found = compare_laws(law, EXPECTED, "the target's")
    if not found.refuted and not found.unknown:
        assert found.figures["tv"] <= found.figures["rounding"] / 4
        assert found.figures["rounding"] <= LARGEST
    if found.refuted:
        assert found.figures["tv"] > rounding_bound(law)
    assert not (found.refuted and found.unknown)


@given(roundings, roundings)
def test_what_bounds_several_runs_allows_as_much_as_each(one, other):
    other = other._replace(epsilon=one.epsilon)
    for both in (worst(one, other), after(one, other)):
        assert allowed(both) >= max(allowed(one), allowed(other)) * (1 - 1e-12)


@pytest.mark.parametrize(("draws", "is_run"), [(3, True), (6, True), (7, False), (9, False)])
def test_a_law_that_is_estimated_to_be_large_is_not_begun_if_few_runs_must_complete_it(draws, is_run):
    runs = []

    def decode(interpreter):
        runs.append(1)
        return tuple(interpreter.categorical([0.5, 0.5], "coin") for _ in range(draws))

    program = EngineProgram(f"{draws} coins", lambda: nullcontext(decode), law=dict, most_paths=10_000)
    conditions = Conditions(complete_within=100)
    with nullcontext() if is_run else pytest.raises(EnumerationTooLarge, match=f"about {2**draws} paths"):
        assert not enumerated(program, conditions).missing
    assert (len(runs) >= 2**draws) is is_run


@pytest.mark.parametrize(("draws", "most"), [(3, 8), (6, 64), (7, 25), (9, 25)])
def test_a_law_that_is_estimated_to_be_larger_than_its_runs_gets_a_quarter_of_them(draws, most):
    def decode(interpreter):
        return tuple(interpreter.categorical([0.5, 0.5], "coin") for _ in range(draws))

    program = EngineProgram(f"{draws} coins", lambda: nullcontext(decode), law=dict, most_paths=10_000)
    law = enumerated(program, Conditions(runs=100))
    assert law.runs == most
    assert bool(law.missing) is (most == 25)


@pytest.mark.parametrize("ends", [0, 1])
def test_a_few_short_paths_do_not_hide_that_a_law_is_large(ends):
    """Half of the random runs end after one draw; the others show the 4096 paths behind the other outcome."""

    def decode(interpreter):
        if interpreter.categorical([0.5, 0.5], "coin") == ends:
            return ()
        return tuple(interpreter.categorical([0.5, 0.5], ("coin", place)) for place in range(12))

    program = EngineProgram("coins", lambda: nullcontext(decode), law=dict, most_paths=10_000)
    assert enumerated(program, Conditions(runs=1000)).runs == 250
    with pytest.raises(EnumerationTooLarge, match="paths"):
        enumerated(program, Conditions(runs=1000, complete_within=1000))


def test_an_estimate_of_paths_takes_a_limited_number_of_runs():
    runs = []

    def decode(interpreter):
        runs.append(1)
        return tuple(interpreter.categorical([0.5, 0.5], ("coin", place)) for place in range(20))

    program = EngineProgram("20 coins", lambda: nullcontext(decode), law=dict, most_paths=1e9)
    assert enumerated(program, Conditions(runs=10_000)).runs == 2500
    assert len(runs) == 2500 + PROBES + MOST_PROBES
