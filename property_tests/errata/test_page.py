"""The page of errata is what its tests compute, row by row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from test_support.errata.record import DOCUMENTS, ERRATA, QUOTES, Erratum, Verdict
from tools.pages.errata_page import MODULES, page, rows_of

ROOT = Path(__file__).parents[2]


@pytest.mark.thorough
def test_the_page_is_what_the_tests_compute():
    assert (ROOT / "docs" / "errata.md").read_text("utf-8") == page()


def test_every_row_is_a_test_of_its_own():
    tests = [row.test for row in ERRATA]
    assert len(set(tests)) == len(tests) >= 77
    modules = {Path(module.__file__).relative_to(ROOT).as_posix(): module for module in MODULES}
    for test in tests:
        file, _, name = test.partition("::")
        assert callable(getattr(modules[file], name))
    assert sorted(tests) == sorted(row.test for key in DOCUMENTS for row in rows_of(key))


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_given(verdict):
    assert any(row.verdict is verdict for row in ERRATA)


def test_every_row_quotes_what_it_speaks_of_and_every_quotation_has_its_row():
    assert all(row.quoted and all(row.quoted) for row in ERRATA)
    assert {row.test.partition("::")[2] for row in ERRATA} == set(QUOTES)


def test_what_is_meant_is_never_worse_than_what_is_printed():
    order = [Verdict.TRUE, Verdict.CONDITION]
    for row in ERRATA:
        if row.meant is not row.verdict:
            assert row.meant in order
            assert row.verdict not in order[: order.index(row.meant) + 1]


@pytest.mark.parametrize("row", ERRATA, ids=lambda row: row.test.partition("::")[2])
def test_no_decimal_number_of_a_row_was_typed(row):
    typed = re.sub(r"\{[^}]*\}", "", row.correct)
    typed = re.sub(r"Sections? \d+(\.\d+)*( and \d+(\.\d+)*)?", "", typed)
    assert not re.search(r"\d*\.\d", typed)


def row_of(correct, show):
    return Erratum("TH", "1", (), "", Verdict.TRUE, Verdict.TRUE, correct, show, "")


def test_a_number_that_is_not_in_the_text_is_an_error():
    with pytest.raises(ValueError, match="were computed and are not in the text"):
        row_of("{a}", lambda: {"a": 1, "b": 2}).corrected()
    with pytest.raises(KeyError):
        row_of("{a} {b}", lambda: {"a": 1}).corrected()


def test_a_row_whose_claim_turned_out_otherwise_fails():
    def show():
        assert ERRATA == []
        return {}

    with pytest.raises(AssertionError):
        row_of("", show).corrected()
