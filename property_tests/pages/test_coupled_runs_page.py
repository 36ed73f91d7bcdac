"""The page of coupled runs: what the survey found, by group."""

from __future__ import annotations

from pathlib import Path

from tools.pages.coupled_runs_page import STATUSES, WORDS, page
from tools.surveys.coupled_runs import GROUPS

SUBJECTS = dict.fromkeys(WORDS, 2)


def line(group, subject, status="holds", statement="", **figures):
    return {"group": group, "subject": subject, "status": status, "statement": statement, "figures": figures}


def test_every_group_of_the_survey_has_a_row():
    assert WORDS.keys() == GROUPS.keys()


def test_runs_are_added_up_and_differences_are_told():
    parted = "run as it is and examined with the same random numbers, it does not do the same"
    lines = [
        line("mutants", "a", coupled_runs=100, fed_runs=3, coupled_ties=1),
        line("mutants", "b", "unknown", parted, coupled_runs=4),
        line("idioms", "c", "unknown", "cannot be enumerated, only sampled: a | b"),
    ]
    text = page(lines, SUBJECTS)
    assert f"| {WORDS['mutants']} | 2 | 2 | 2 | 104 | 3 | 1 | 0.124 | 1 |" in text
    assert f"* `b`: {parted}" in text
    assert f"### {STATUSES['unknown']} (*unknown*)\n\n* `c`: cannot be enumerated, only sampled: a \\| b\n" in text
    assert "ended before the others" in text


def test_subjects_with_the_same_reason_share_a_line():
    lines = [
        line("idioms", name, status, "no draw")
        for name, status in (("a", "unknown"), ("b", "refuted"), ("c", "unknown"))
    ]
    text = page(lines, SUBJECTS)
    assert "* `a`, `c`: no draw\n" in text
    assert "* `b`: no draw\n" in text


def test_without_differences_there_are_none():
    assert "## Differences\n\nNone.\n" in page([], SUBJECTS)


def test_the_page_has_the_rows_of_the_survey():
    written = Path("docs/coupled-runs.md").read_text("utf-8")
    assert all(f"\n| {words} |" in written for words in WORDS.values())
    assert "## Differences" in written
