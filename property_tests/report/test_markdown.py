"""The table of verdicts says one thing once, however many subjects it was found in."""

from __future__ import annotations

from specverify.base.verdict import Status, Verdict
from specverify.report.markdown import verdict_table

VERDICTS = [
    Verdict("some:all/first", "law_is_target", Status.REFUTED, "first: it is another one", figures={"tv": 0.25}),
    Verdict("some:all/second", "law_is_target", Status.REFUTED, "second: it is another one"),
    Verdict("some:all/second", "stop_law", Status.HOLDS, "it stops where it should"),
]


def told(settings):
    return [line for line in verdict_table(VERDICTS, settings).splitlines() if line.startswith("* ")]


def test_what_was_found_in_several_settings_is_told_once():
    settings = {"some:all/first": "first", "some:all/second": "second"}
    assert told(settings) == ["* ✘ law is target: it is another one (some:all/first, some:all/second)"]


def test_a_subject_of_no_table_is_told_by_itself():
    assert told({"some:all/first": "", "some:all/second": "other"}) == [
        "* ✘ law is target: first: it is another one (some:all/first)",
        "* ✘ law is target: second: it is another one (some:all/second)",
    ]


def test_checks_with_one_statement_about_the_same_subjects_share_a_line():
    checks = {"law_is_target": "it raises", "stop_law": "it raises", "scores_match": "another error"}
    verdicts = [
        Verdict(f"some:all/{name}", check, Status.UNUSABLE, statement)
        for check, statement in checks.items()
        for name in ("first", "second")
    ]
    verdicts.append(Verdict("some:all/third", "law_is_target", Status.UNUSABLE, "it raises"))
    lines = verdict_table(verdicts, {}).splitlines()
    assert [line for line in lines if line.startswith("* ")] == [
        "* ! law is target: it raises (some:all/first, some:all/second, some:all/third)",
        "* ! stop law: it raises (some:all/first, some:all/second)",
        "* ! scores match: another error (some:all/first, some:all/second)",
    ]
    lines = verdict_table(verdicts[:-1], {}).splitlines()
    assert [line for line in lines if line.startswith("* ")] == [
        "* ! law is target, stop law: it raises (some:all/first, some:all/second)",
        "* ! scores match: another error (some:all/first, some:all/second)",
    ]


def test_a_row_for_each_subject_and_a_column_for_each_check():
    assert verdict_table(VERDICTS, {}).splitlines()[:4] == [
        "| subject | law is target | stop law |",
        "|---|---|---|",
        "| some:all/first | ✘ 0.2 |  |",
        "| some:all/second | ✘ | ✔ |",
    ]
