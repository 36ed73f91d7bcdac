"""The page of black boxes is current, and a page without a place is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from specverify.trust.black_box_page import with_tables


@pytest.mark.thorough
def test_the_page_is_current():
    page = (Path(__file__).parents[2] / "docs" / "black-boxes.md").read_text("utf-8")
    assert with_tables(page) == page


def test_a_page_without_a_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="the page has no place for the table 'bugs'"):
        with_tables("# Black boxes\n")
