"""The page of options says what is introspected and recorded, and an option that nobody listed shows up."""

from __future__ import annotations

from pathlib import Path

import pytest

from specverify.engines.huggingface.coverage import NOT_COVERED, REASONS, options, page, used_by, uses
from specverify.engines.huggingface.generation import assisted_engine, prompt_lookup_engine
from specverify.engines.huggingface.rows import SMALL

PAGE = Path(__file__).parents[3] / "docs/findings/transformers-5.23.0-options.md"


def test_the_page_has_a_line_for_every_option_of_the_installed_library():
    written = PAGE.read_text("utf-8")
    assert [line.split("`")[1] for line in written.splitlines() if line.startswith("| `")] == list(options())


def test_an_option_that_nobody_listed_is_not_covered():
    assert f"| `brand_new` | {NOT_COVERED} |" in page({}, ("brand_new",))
    assert "| `brand_new` | `a/row` |" in page({"brand_new": ["a/row"]}, ("brand_new",))


def test_reasons_are_given_for_options_that_exist():
    assert set(REASONS) <= set(options())


@pytest.mark.parametrize(
    ("build", "option"), [(assisted_engine, "assistant_model"), (prompt_lookup_engine, "prompt_lookup_num_tokens")]
)
def test_what_a_call_passes_is_recorded(build, option):
    """The other way to speculate is the control."""
    used = used_by(build(SMALL))
    assert used & {"assistant_model", "prompt_lookup_num_tokens"} == {option}


@pytest.mark.thorough
def test_the_page_is_what_the_rows_use():
    assert PAGE.read_text("utf-8") == page(uses(), options())
