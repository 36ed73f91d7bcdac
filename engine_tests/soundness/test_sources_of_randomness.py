"""Every source of randomness, in a right engine and in a wrong one: no right one is refuted, no wrong one holds."""

from __future__ import annotations

import re

import pytest

from specverify.base.verdict import Status
from test_support.soundness.sources_of_randomness import HIDDEN, SOURCES
from tools.pages.sources_page import HEAD, PAGE, RIGHT, WRONG, line, verdicts

NOWHERE = {"a generator written in Python", "bytes of a uniform, with the refusal caught"}
"""Plain arithmetic: nothing is called."""
LINES = PAGE.read_text("utf-8").removeprefix(HEAD).splitlines()


@pytest.mark.thorough(keep=35)
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_answered_has_an_exact_law(source):
    right, wrong = (verdicts(SOURCES[source], p)["law_is_target"] for p in (RIGHT, WRONG))
    assert (right.status, wrong.status) == (Status.HOLDS, Status.REFUTED), (right.statement, wrong.statement)
    assert line(source, [right.status, wrong.status]) in LINES


@pytest.mark.thorough(keep=22)
@pytest.mark.parametrize("source", HIDDEN)
def test_what_cannot_be_answered_is_unknown_and_named(source):
    found = [verdicts(HIDDEN[source], p) for p in (RIGHT, WRONG)]
    for each in found:
        assert each["law_is_target"].status is Status.UNKNOWN, each["law_is_target"].statement
        assert Status.REFUTED not in {verdict.status for verdict in each.values()}
        assert re.search(r"\w+\.py:\d+", each["program_is_its_draws"].statement) or source in NOWHERE
    assert line(source, [each["law_is_target"].status for each in found]) in LINES


def test_the_page_has_a_line_for_every_source_and_no_other():
    assert PAGE.read_text("utf-8").startswith(HEAD)
    assert [row.split(" | ")[0].removeprefix("| ") for row in LINES] == [*SOURCES, *HIDDEN]
