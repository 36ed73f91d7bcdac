"""Verdicts as text: the headline, one wrong law once, and the number of drafts."""

from __future__ import annotations

from reference import Claim
from specverify.base.verdict import Counterexample, Evidence, Status, Verdict
from specverify.report.prose import also_refuted, by_cause, failure, headline, scope


def refuted(check, fault=""):
    example = Counterexample(("here",), "then", fault=fault)
    return Verdict("it", check, Status.REFUTED, "no", None, Evidence.EXACT, example)


def test_a_headline_says_nothing_of_claims_that_other_checks_examined():
    refuted = Verdict("it", "support_at_boundary_draws", Status.REFUTED, "no", Claim.SUPPORTED, Evidence.EXACT)
    assert headline(refuted) == "support at boundary draws - refuted: SUPPORTED    exact, no"


def test_verdicts_of_one_wrong_law_are_told_once():
    verdicts = [refuted("tokens_are_supported"), refuted("law_is_target", "the fault"), refuted("inputs_unchanged")]
    first, second = by_cause(verdicts)
    assert [verdict.check for verdict in first] == ["law_is_target", "tokens_are_supported"]
    assert [verdict.check for verdict in second] == ["inputs_unchanged"]
    assert failure(first[0]).splitlines()[0] == "the fault"
    assert also_refuted(first[1:]) == "  Refuted with it: tokens are supported"
    assert [len(group) for group in by_cause([refuted("tokens_are_supported"), refuted("eos_is_final")])] == [1, 1]


def test_dependent_rows_are_told_before_a_law_without_a_cause():
    law, rows = refuted("law_is_target", "it differs"), refuted("rows_are_independent", "one row, two answers")
    unnamed = law._replace(counterexample=law.counterexample._replace(named=False))
    first, *others = by_cause([unnamed, rows])[0]
    assert [verdict.check for verdict in (first, *others)] == ["rows_are_independent", "law_is_target"]
    assert also_refuted(others) == "  Refuted with it: law is target (then)"
    assert [verdict.check for verdict in by_cause([law, rows])[0]] == ["law_is_target", "rows_are_independent"]


def test_a_forbidden_token_is_told_before_a_law_without_a_sure_cause():
    law, token = refuted("law_is_target", "it differs"), refuted("constraint_is_kept", "token 1 is forbidden")
    sure = law._replace(counterexample=law.counterexample._replace(sure=True))
    assert [group[0].check for group in by_cause([law, token])] == ["constraint_is_kept", "law_is_target"]
    assert [group[0].check for group in by_cause([sure, token])] == ["law_is_target", "constraint_is_kept"]


def test_the_line_of_a_verdict_says_how_much_was_drafted_and_left_out():
    figures = {"cases": 3, "skipped": 2, "gamma": 8, "runs": 5}
    said = scope(Verdict("it", "law_is_target", Status.HOLDS, "", None, Evidence.EXACT, figures=figures))
    assert said == "3 cases, 2 larger ones out of reach, up to 8 drafts a round, 5 runs"
