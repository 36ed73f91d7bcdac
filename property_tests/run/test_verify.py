"""Cases that raise an error or refute, the paths of a counterexample, and the setting that explains an engine."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from property_tests.mutants.test_mutants import each, refutation
from specverify.base.verdict import Counterexample, Examination, Status
from specverify.checks import Case, Conditions, check_named
from specverify.checks.check import of_names
from specverify.mutants import mutants, randomness
from specverify.run.verify import MOST_STOPPED, Checklist, _in_probe, run_check
from specverify.subjects.engine_making import Made
from specverify.subjects.made_engine import made_subject

EVERY_EDGE = Conditions(edge=0.0)
"""Planted faults at boundary draws refute whatever their probability."""


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    """The mutant with a generator of its own does the same whichever tests ran before."""
    monkeypatch.setattr(randomness, "_HIDDEN", np.random.default_rng(7))


OF_DECODERS_OF_OURS = [
    mutant for mutant in mutants() if mutant.control().name in {"reference:speculative-sampling", "reference:nasd"}
]


@pytest.mark.thorough(keep=4)
@each(OF_DECODERS_OF_OURS)
def test_the_paths_of_a_counterexample_come_heaviest_first(mutant):
    """Each path begins with its probability; what other checks say beside their counterexample has none."""
    lines = refutation(mutant).counterexample.because
    begun = [line for line in lines if line.startswith("with probability ") and line.endswith(":")]
    weights = [Fraction(line.removeprefix("with probability ")[:-1]) for line in begun]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) <= 1


def test_some_counterexamples_have_several_paths():
    assert len(refutation(OF_DECODERS_OF_OURS[0]).counterexample.because) > 1


def test_only_a_difference_of_laws_is_explained_in_another_setting():
    """Other checks state no certain cause there."""

    def probe():
        pytest.fail("the setting is opened")

    subject = made_subject(lambda scenario: Made(lambda prompt: (0,) * scenario.horizon), "an engine")
    program = subject.programs[0]._replace(probe=probe)
    refuted = Examination("it is wrong", failed=True, counterexample=Counterexample((), ""))
    case = Case(subject, program, lambda conditions: refuted)
    assert _in_probe(case, refuted, check_named("stop_law"), Conditions()) is None
    with pytest.raises(pytest.fail.Exception):
        _in_probe(case, refuted._replace(figures={"tv": 0.5}), check_named("law_is_target"), Conditions())


def raised(conditions):
    message = "this row is empty"
    raise ValueError(message)


def verdict_of_cases(*examinations):
    """Return the verdict of a check with one case for each of ``examinations``."""
    subject = made_subject(lambda scenario: Made(lambda prompt: (0,) * scenario.horizon), "an engine")
    check = check_named("stop_law")
    cases = {f"case {number}": examine for number, examine in enumerate(examinations)}
    return run_check(subject, check._replace(examines=(of_names(cases),)), Checklist((check,)))


def test_a_case_that_raises_an_error_is_no_obstacle_to_a_case_that_refutes():
    verdict = verdict_of_cases(raised, raised, lambda _: Examination("it is wrong", failed=True))
    assert (verdict.status, verdict.statement) == (Status.REFUTED, "it is wrong")
    (note,) = verdict.figures["notes"]
    assert note.startswith("in 2 of its cases an error is raised instead, such as in case 0: ValueError: this row is")


def test_a_case_that_raises_an_error_is_told_where_no_case_refutes():
    verdict = verdict_of_cases(lambda _: Examination("it is right"), raised, lambda _: Examination("it is right"))
    assert verdict.status is Status.UNUSABLE
    assert verdict.statement.startswith("ValueError: this row is empty")


def test_a_check_ends_after_some_cases_with_errors():
    examined = []

    def counted(conditions):
        examined.append(conditions)
        raised(conditions)

    assert verdict_of_cases(*[counted] * 40).status is Status.UNUSABLE
    assert len(examined) == MOST_STOPPED


def test_a_refutation_by_a_small_deviation_is_told_by_a_case_with_a_large_one():
    cause = Counterexample((), "", fault="it is wrong")

    def deviating(tv):
        return lambda _: Examination(f"TV = {tv}", failed=True, counterexample=cause, figures={"tv": tv, "runs": 4})

    def told(*deviations):
        return verdict_of_cases(*map(deviating, deviations)).statement

    assert told(0.001, 0.002, 0.2, 0.3) == "TV = 0.3"
    assert told(0.001, 0.002) == "TV = 0.001"
    assert told(0.02, 0.5) == "TV = 0.02"


def test_an_engine_of_which_every_case_has_too_many_paths_is_told_so():
    def make(scenario):
        def decode():
            kept = sum(random.random() < 1 / 3 for _ in range(20))
            return [kept % scenario.vocabulary] * scenario.horizon

        return decode

    subject, law = made_subject(make, "it"), check_named("law_is_target")
    verdict = run_check(subject, law, Checklist((law,), quick=True))
    assert verdict.status is Status.UNKNOWN
    assert "have too many paths to follow" in verdict.statement
