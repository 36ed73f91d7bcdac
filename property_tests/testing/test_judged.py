"""The time limit of a judged subject, and the error that its verdicts raise."""

from __future__ import annotations

import subprocess
import sys

import pytest

from specverify.base.verdict import Status, Verdict
from specverify.testing import SpeculationRefuted, SpeculationUndecided
from specverify.testing.judged import examined, fault_of, offered
from specverify.testing.plans import CheckPlan


@pytest.mark.parametrize(
    ("how", "share", "seconds"),
    [({"timeout": 900.0}, {}, 900.0), ({}, {}, 600.0), ({"timeout": 900.0}, {"timeout": 700.0}, 700.0)],
)
def test_a_limit_longer_than_the_usual_one_is_kept_where_no_share_of_a_run_is_shorter(how, share, seconds):
    given = []
    plan = CheckPlan("a plan", (), lambda names, limit, known: [given.append(limit)][:0], how)
    token = offered.set(share)
    try:
        assert not list(examined(plan, (), {}))
    finally:
        offered.reset(token)
    assert given == [seconds]


def test_beside_a_refutation_the_undecided_checks_are_listed_without_their_reasons():
    plan = CheckPlan("a plan", (), lambda names, limit, known: [], {})
    unknown = Verdict("it", "acceptance_is_optimal", Status.UNKNOWN, "the reason")
    refuted = Verdict("it", "law_is_target", Status.REFUTED, "the laws differ")
    alone, beside = fault_of(plan, [unknown]), fault_of(plan, [refuted, unknown])
    assert isinstance(alone, SpeculationUndecided)
    assert "the reason" in str(alone)
    assert isinstance(beside, SpeculationRefuted)
    assert str(beside).endswith("it: not decided: acceptance is optimal")
    behind = unknown._replace(statement="where it steps is not known: see law_is_target")
    assert str(fault_of(plan, [refuted, behind])).endswith("not decided: acceptance is optimal (see law is target)")
    assert "the reason" not in str(beside)


@pytest.mark.parametrize("status", [Status.UNUSABLE, Status.HOLDS])
def test_what_a_law_shows_is_told_before_boundary_draws_if_its_answers_are_unusable(status):
    plan = CheckPlan("a plan", (), lambda names, limit, known: [], {})
    law = Verdict("it", "law_is_target", status, "it returned a matrix")
    refuted = Verdict("it", "support_at_boundary_draws", Status.REFUTED, "a token comes out")
    said = str(fault_of(plan, [law, refuted]))
    assert said.startswith(
        "it: law_is_target is unusable" if status is Status.UNUSABLE else "it: support at boundary draws"
    )
    assert "a token comes out" in said


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.HOLDS])
def test_a_check_that_is_expected_to_fail_and_is_decided_by_samples_alone_does_not_hold(status):
    options = {"expected_failures": {"draws_are_independent": "common noise"}}
    names = ("draws_are_independent", "samples_fit_law")
    statistical = frozenset(names[1:])
    plan = CheckPlan("it", names, lambda *_: [], options, statistical=statistical, sample_decides=True)
    fault = fault_of(plan, [Verdict("it", names[0], status, ""), Verdict("it", names[1], Status.HOLDS, "")])
    assert (fault is None) == (status is Status.UNKNOWN)
    assert fault is None or "draws_are_independent was expected to fail (common noise) and holds" in str(fault)


USERS_TESTS = """
import random
from specverify.testing import check_verifier


def verify(p, q, draft_tokens):
    return [random.choices(range(len(q[0])), [float(mass) for mass in q[0]])[0]]


def test_refuted():
    check_verifier(verify, gammas=(1,), checks=["law_is_target"], quick=True)


def test_unusable():
    check_verifier(lambda p, q, drafts, rows, columns: [0])


def test_bad_argument():
    check_verifier(verify, gammas=(0,))
"""


def test_a_failed_test_shows_its_own_line_and_the_message_alone(tmp_path):
    (tmp_path / "test_users.py").write_text(USERS_TESTS)
    pytest_run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    shown = subprocess.run(
        [*pytest_run, tmp_path / "test_users.py"], check=False, capture_output=True, text=True
    ).stdout
    assert "3 failed" in shown
    assert "drafted 1 (q = 0.889), rejected" in shown
    assert "Args:" not in shown
    assert "specverify/" not in shown
