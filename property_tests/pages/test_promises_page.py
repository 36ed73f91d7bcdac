"""The tables of promises are those of the tests, and each promise has four wrong engines and four right ones."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import pytest

from tools.pages.promises_page import NOT_APPLICABLE, WRONG, engines_of_promises, examined, planted, with_tables

DOCS = Path(__file__).parents[2] / "docs"


def test_the_tables_of_the_page_are_those_of_the_tests():
    text = (DOCS / "promises.md").read_text("utf-8")
    assert with_tables(text) == text


def test_each_promise_has_four_wrong_engines_and_four_right_ones_wherever_it_is_examined():
    found = engines_of_promises()
    assert len(found) > 12
    for promise, where in found.items():
        for way, engines in where.items():
            assert min(engines) >= 4, (promise, way, engines)
        for way in ("sampler", "http"):
            assert (way in where) != ((promise, way) in NOT_APPLICABLE), (promise, way)


def test_the_page_of_planted_bugs_has_each_and_all_are_refuted():
    text = (DOCS / "planted-promises.md").read_text("utf-8")
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \| ([^|]+) \| `([^`]+)` \| (\w+) \| .+ \|$", text, re.MULTILINE
    )
    assert [row[:5] for row in rows] == [
        (bug.fault, WRONG[bug.fault], bug.promise, bug.record, bug.check) for bug in planted()
    ]
    assert len(rows) == len(WRONG)
    assert {status for *_, status in rows} == {"refuted"}
    assert f"{len(rows)} of {len(rows)} are refuted" in text
    assert re.search(r"without a fault: all \d+ pairs of an engine and a check hold", text)


@pytest.mark.thorough
@pytest.mark.parametrize(("fault", "expected"), [("no logarithm", "refuted"), ("", "holds")])
def test_a_bug_is_examined_by_its_check(fault, expected):
    (bug,) = (bug for bug in planted() if bug.fault == "no logarithm")
    status, words = examined(bug._replace(make=partial(bug.make.func, fault)))
    assert status == expected
    assert words
