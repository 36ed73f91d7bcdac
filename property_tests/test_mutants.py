"""The suite against planted bugs and against the correct rows: it must refute every one, and none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from reference import ALGORITHMS
from specverify.checks import CHECKS, Conditions
from specverify.identifier import Replay, decode, encode
from specverify.mutants import MUTANTS, hidden_randomness
from specverify.report.prose import failure
from specverify.scenarios import scenario_named
from specverify.subjects.algorithm import algorithm_subject
from specverify.subjects.subject import Case
from specverify.verdict import Evidence, Status
from specverify.verify import Plan, run_case, run_check, verify_subject

EXACT = tuple(check for check in CHECKS if check.evidence is not Evidence.STATISTICAL)
OF_DECODERS = tuple(
    check
    for check in EXACT
    if any(check.obstacle(algorithm_subject(row, "mutant")) is None for row in (*ALGORITHMS, MUTANTS[0].algorithm))
)
"""Checks that have something to say of a decoder of ours; those of engines and batches kill theirs in engine_tests."""
BY_NAME = {check.name: check for check in CHECKS}

every_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    """The mutant with a generator of its own does the same whichever tests ran before."""
    monkeypatch.setattr(hidden_randomness, "_HIDDEN", np.random.default_rng(7))


def refutation(mutant):
    check = BY_NAME[mutant.killed_by]
    return run_check(algorithm_subject(mutant.algorithm, "mutant"), check, Plan((check,)))


@every_mutant
def test_the_named_check_refutes_the_mutant_with_a_counterexample(mutant):
    verdict = refutation(mutant)
    assert verdict.status is Status.REFUTED
    assert verdict.counterexample.let
    assert verdict.counterexample.then
    lines = failure(verdict, [verdict]).splitlines()
    assert [word for word in ("Let", "Then", "Again") if any(line.startswith(f"  {word} ") for line in lines)] == [
        "Let",
        "Then",
        "Again",
    ]


@every_mutant
def test_the_replay_of_a_counterexample_is_refuted_again(mutant):
    wanted = decode(refutation(mutant).counterexample.again)
    subject = algorithm_subject(mutant.algorithm, "mutant")
    assert (wanted.subject, wanted.check) == (subject.name, mutant.killed_by)
    variant = next(item for item in subject.variants if item.label == wanted.variant)
    case = Case(subject, variant, scenario_named(wanted.scenario))
    again = run_case(case, BY_NAME[wanted.check], Conditions(seed=wanted.seed))
    assert again.status is Status.REFUTED


def test_the_paths_of_a_counterexample_come_heaviest_first():
    stories = [refutation(mutant).counterexample.because for mutant in MUTANTS]
    weights = [[Fraction(story.rpartition("contributes ")[2]) for story in because] for because in stories]
    assert max(map(len, weights)) > 1
    assert weights == [sorted(row, reverse=True) for row in weights]
    assert all(sum(row) <= 1 for row in weights)


@every_mutant
def test_a_mutant_claims_what_a_correct_row_claims(mutant):
    assert any((row.claims, row.examples) == (mutant.algorithm.claims, mutant.algorithm.examples) for row in ALGORITHMS)
    assert mutant.name not in {row.name for row in ALGORITHMS}
    assert mutant.citation


def test_a_mutant_that_keeps_the_law_is_refuted_for_its_acceptance_alone():
    """Rejecting every draft is lossless: only the claim of an optimal coupling falls."""
    mutant = next(mutant for mutant in MUTANTS if mutant.killed_by == "acceptance_is_optimal")
    law = BY_NAME["law_is_target"]
    assert run_check(algorithm_subject(mutant.algorithm, "mutant"), law, Plan((law,))).status is Status.HOLDS


@pytest.mark.parametrize("check", OF_DECODERS, ids=lambda check: check.name)
def test_every_exact_check_is_the_killer_of_some_mutant(check):
    assert check.name in {mutant.killed_by for mutant in MUTANTS}


@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row.name)
def test_a_correct_row_passes_every_exact_check_that_applies(row):
    verdicts = list(verify_subject(algorithm_subject(row), Plan(EXACT)))
    assert [verdict.check for verdict in verdicts] == [check.name for check in EXACT]
    allowed = {Status.HOLDS, Status.NOT_APPLICABLE} | ({Status.DECLARED_BIAS} if row.declared_law else set())
    assert {verdict.check: verdict.statement for verdict in verdicts if verdict.status not in allowed} == {}
    assert all(verdict.figures["rational"] for verdict in verdicts if verdict.status is not Status.NOT_APPLICABLE)
    claimed = {check.claim for check in EXACT if check.claim in row.claims}
    held = {verdict.claim for verdict in verdicts if verdict.status is Status.HOLDS and verdict.claim}
    assert {claim.value for claim in claimed} <= held


# Identifiers


def test_an_identifier_is_one_word_and_decodes_to_what_was_encoded():
    replay = Replay("reference:egag", "law_is_target", "gamma_min=1 gamma_max=3", "generic-v2-p0-h1-s0", "", 7)
    assert decode(encode(replay)) == replay
    assert encode(replay).split() == [encode(replay)]


@pytest.mark.parametrize("word", ["", "x", "näh", "AAAA", encode(Replay("a", "b"))[:-4]])
def test_another_word_is_no_identifier(word):
    with pytest.raises(ValueError, match="is not a replay identifier: expected the word a report printed"):
        decode(word)
