"""A subject that turns out in the middle of a check to be no function of its draws: none that is later accuses it."""

from __future__ import annotations

from reference import ALGORITHMS
from specverify.base.verdict import Status
from specverify.checks import CHECKS
from specverify.checks.check import Case
from specverify.laws.draws import NotAFunctionOfItsDraws
from specverify.run.verify import Checklist, verify_subject
from specverify.subjects.algorithm import algorithm_subject


def found_out(*_):
    raise NotAFunctionOfItsDraws("a draw after the 3 recorded ones, expected no more")


def test_what_comes_after_has_no_law_to_compare():
    subject = algorithm_subject(ALGORITHMS[0])
    first, second = (check for check in CHECKS if check.name in {"law_is_target", "horizon_is_respected"})
    first = first._replace(cases=lambda subject: iter([Case(subject, None, found_out)]))
    verdicts = list(verify_subject(subject, Checklist((first, second), most_cases=1)))
    assert [verdict.status for verdict in verdicts] == [Status.UNKNOWN, Status.UNKNOWN]
    assert "expected no more" in verdicts[0].statement
    assert "it is not a function of its draws" in verdicts[1].statement
