"""The suite against planted bugs and against the correct rows: it must refute every one, and none."""

from __future__ import annotations

from functools import cache
from itertools import islice

import numpy as np
import pytest

from reference import ALGORITHMS
from specverify.base.identifier import unpack_replay
from specverify.base.verdict import Status
from specverify.checks import CHECKS, EXACT_CHECKS, Conditions, check_named
from specverify.laws.scenarios import SCENARIOS
from specverify.mutants import CATEGORIES, left_out, mutants, randomness, suspects
from specverify.report.prose import failure, first_sentence
from specverify.run.replays import again
from specverify.run.verify import Checklist, run_case, run_check, verify_subject, warmed_up
from specverify.subjects.algorithm import algorithm_subject
from test_support.shares import share_of

OF_DECODERS = tuple(
    check for check in EXACT_CHECKS if any(check.obstacle(algorithm_subject(row)) is None for row in ALGORITHMS)
)
"""Checks that have something to say of a decoder of ours; those of engines and batches kill theirs in engine_tests."""
CLEAN = {Status.HOLDS, Status.NOT_APPLICABLE}
CLEAN_OR_DECLARED = {Status.HOLDS, Status.DECLARED_BIAS}
EVERY_EDGE = Conditions(edge=0.0)
"""Planted faults at boundary draws refute whatever their probability."""


def share_with_a_case(subject, place, checks):
    """Return the subject in a sixth of its scenarios, and in one more for each check that has no case in those."""
    kept = share_of(subject.scenarios, place, 6)
    for check in checks:
        if (
            subject.variants
            and check.obstacle(subject) is None
            and not any(check.cases(subject._replace(scenarios=kept)))
        ):
            kept += tuple(case.situation.scenario for case in islice(check.cases(subject), 1))
    return subject._replace(scenarios=kept)


def each(chosen):
    """Run a test for each mutant, all tests of a mutant in one process: its refutation is computed once.

    All mutants of one correct verifier are in one process too: the verifier is judged once.
    """

    def group(mutant):
        control = mutant.control().name
        return pytest.mark.xdist_group(control if control.startswith("correct ") else mutant.name)

    return pytest.mark.parametrize("mutant", [pytest.param(m, marks=group(m), id=m.name) for m in chosen])


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    """The mutant with a generator of its own does the same whichever tests ran before."""
    monkeypatch.setattr(randomness, "_HIDDEN", np.random.default_rng(7))


@cache
def refutation(mutant):
    check = check_named(mutant.killed_by)
    return run_check(warmed_up(opened(mutant.open)), check, Checklist((check,), EVERY_EDGE))


def opened(make):
    try:
        return make()
    except ImportError as error:
        pytest.skip(f"it needs a library that is not here: {error}")


SHARED: dict[tuple, Status] = {}
"""What a check said of registry rows and of the correct verifiers, which are the controls of many mutants.

It went through a sixth of the scenarios; beside it each control is judged in the very case that refuted its mutant.
"""


def status_without_the_bug(subject, check):
    key = (subject.name, *(variant.label for variant in subject.variants), check.name)
    if key in SHARED:
        return SHARED[key]
    fewer = share_with_a_case(subject, CHECKS.index(check), (check,))
    status = run_check(fewer, check, Checklist((check,), EVERY_EDGE)).status
    if subject.name.startswith(("reference:", "correct ")):
        SHARED[key] = status
    return status


OPENED = [(mutant, mutant.open()) for mutant in reversed(mutants())]
KINDS = {(mutant.killed_by, subject.rational, bool(subject.programs)): mutant for mutant, subject in OPENED}
"""The first mutant for each check and kind of subject."""


def check_refutation(mutant):
    """Check that the named check refutes ``mutant``, and holds in the same case without the bug."""
    verdict = refutation(mutant)
    assert verdict.status is Status.REFUTED, verdict.statement
    assert verdict.counterexample.let
    assert verdict.counterexample.then
    lines = failure(verdict).splitlines()
    assert lines[0] == first_sentence(verdict)
    assert all(any(line.startswith(f"  {word} ") for line in lines) for word in ("Let", "Check", "Again"))
    control = mutant.control()
    assert (mutant.open().name, mutant.open().claims) == (f"mutant:{mutant.name}", control.claims)
    if control.variants:
        wanted = unpack_replay(verdict.counterexample.again)
        assert run_case(*again(control, check_named(mutant.killed_by), wanted)).status in CLEAN_OR_DECLARED


@each(KINDS.values())
def test_a_mutant_of_each_kind_is_refuted_and_without_the_bug_its_case_holds(mutant):
    check_refutation(mutant)


@pytest.mark.thorough(keep=7)
@each(mutant for mutant in mutants() if mutant not in KINDS.values())
def test_the_named_check_refutes_the_mutant_and_without_the_bug_its_case_holds(mutant):
    check_refutation(mutant)


@pytest.mark.thorough(keep=49)
@each(mutants())
def test_the_named_check_holds_without_the_bug(mutant):
    assert status_without_the_bug(mutant.control(), check_named(mutant.killed_by)) in CLEAN_OR_DECLARED


@pytest.mark.thorough(keep=4)
@each(KINDS.values())
def test_the_replay_of_a_counterexample_is_refuted_again(mutant):
    wanted = unpack_replay(refutation(mutant).counterexample.again)
    subject = mutant.open()
    assert (wanted.subject, wanted.check) == (subject.name, mutant.killed_by)
    assert run_case(*again(subject, check_named(wanted.check), wanted)).status is Status.REFUTED


def test_every_mutant_has_a_name_of_its_own_a_class_and_a_citation():
    names = [mutant.name for mutant in mutants()]
    assert len(set(names)) == len(names)
    assert not set(names) & {row.name for row in ALGORITHMS}
    assert {mutant.category for mutant in mutants()} <= set(CATEGORIES)
    assert all(mutant.citation and mutant.summary for mutant in mutants())


def test_what_has_no_mutant_is_said_to_have_none():
    assert all(left_out().values())
    assert not set(left_out()) & {mutant.citation for mutant in mutants()}


@pytest.mark.thorough(keep=18)
@pytest.mark.parametrize(
    "mutant",
    [mutant for mutant in mutants() if mutant.category == "Q"],
    ids=lambda mutant: mutant.name,
)
def test_a_mutant_that_keeps_the_law_is_refuted_for_its_acceptance_alone(mutant):
    """Refusing drafts, or drafting about another text, is lossless: only the claim of an optimal coupling falls."""
    law, subject = check_named("law_is_target"), mutant.open()
    fewer = subject._replace(scenarios=share_of(subject.scenarios, mutants().index(mutant), 3))
    assert run_check(fewer, law, Checklist((law,))).status is Status.HOLDS


@pytest.mark.thorough(keep=6)
@pytest.mark.parametrize("control", suspects(), ids=lambda control: control.name)
def test_no_exact_check_refutes_what_only_looks_wrong(control):
    fewer = share_with_a_case(control.open(), suspects().index(control), EXACT_CHECKS)
    found = {verdict.check: verdict for verdict in verify_subject(fewer, Checklist(EXACT_CHECKS))}
    wrong = {name: verdict.statement for name, verdict in found.items() if verdict.status not in CLEAN}
    assert wrong == {}
    assert found["law_is_target"].status is Status.HOLDS


@pytest.mark.parametrize("check", OF_DECODERS, ids=lambda check: check.name)
def test_every_exact_check_is_the_killer_of_some_mutant(check):
    assert check.name in {mutant.killed_by for mutant in mutants()}


@pytest.mark.thorough(keep=38)
@pytest.mark.parametrize("row", ALGORITHMS, ids=lambda row: row.name)
def test_a_correct_row_passes_every_exact_check_that_applies(row):
    """In an eighth of the scenarios, another one for the next row; ``verify --all`` goes through all of them."""
    chosen = share_of(SCENARIOS, ALGORITHMS.index(row), 8)
    verdicts = list(verify_subject(algorithm_subject(row)._replace(scenarios=chosen), Checklist(EXACT_CHECKS)))
    assert [verdict.check for verdict in verdicts] == [check.name for check in EXACT_CHECKS]
    allowed = {Status.HOLDS, Status.NOT_APPLICABLE} | ({Status.DECLARED_BIAS} if row.declared_law else set())
    assert {verdict.check: verdict.statement for verdict in verdicts if verdict.status not in allowed} == {}
    assert all(verdict.figures["rational"] for verdict in verdicts if verdict.status is not Status.NOT_APPLICABLE)
    claimed = {check.claim for check in EXACT_CHECKS if check.claim in row.claims}
    held = {verdict.claim for verdict in verdicts if verdict.status is Status.HOLDS and verdict.claim}
    assert {claim.value for claim in claimed} <= held
