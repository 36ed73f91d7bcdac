"""The five-minute starts do what they say: as printed, and mended as their text says."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from specverify.cli import app
from tools.pages.starts import BLOCK, PAGES, SAID, checks_in, executed, raised_by, text_of, written

MENDED = {
    "engine-author": [("else drawn(p))", "else drawn([max(a - b, 0) for a, b in zip(p, q)]))")],
    "kernel-author": [("return found", "return min(found, np.flatnonzero(weights)[-1])")],
    "rl-engineer": [("lenience=0.8", "lenience=1"), ("row=DRAFT", "row=POLICY")],
}
"""What the text of a page says to write for what."""


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_code_says(page):
    assert executed(text_of(page)) == text_of(page)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_short_and_hides_no_code(page):
    text = text_of(page)
    assert len(text.splitlines()) <= 90
    fenced = re.findall(r"^```(\w*)$\n", text, flags=re.MULTILINE)[::2]
    told = len(BLOCK.findall(text)) + len(SAID.findall(text))
    assert len(fenced) == told


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("page", MENDED)
def test_the_code_passes_as_mended(page):
    text = text_of(page)
    for old, new in MENDED[page]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    with written(text) as folder:
        assert [raised_by(test) for test in checks_in(folder).values()] == [None] * len(checks_in(folder))


def test_the_rule_of_the_paper_holds_as_mended():
    text = text_of("paper-author")
    old, new = "max(accept_probability(p, q, token), Fraction(1, 2))", "accept_probability(p, q, token)"
    assert text.count(old) == 1
    with written(text.replace(old, new)):
        done = CliRunner().invoke(app, ["verify", "my_rule:one_round", "--check", "law_is_target"])
    assert done.exit_code == 0
    assert "exact, equal as rationals" in done.output


def test_a_page_that_shows_something_else_is_noticed():
    text = text_of("rl-engineer").replace("lenience=0.8", "lenience=0.7")
    assert executed(text) != text
