"""Lists and tables of the pages render on the site.

The site uses Python-Markdown, which is stricter than GitHub: a nested list is indented by four spaces, and a list or a
table begins after an empty line.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MARKER = re.compile(r"( *)(?:[*+-]|\d+\.) ")
FENCE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))


def faults(text):
    """Return the faulty lines of a page: lists and tables that Python-Markdown does not recognise."""
    found = []
    for block in re.split(r"\n[ ]*\n", FENCE.sub("\n", text)):
        lines = [line for line in block.splitlines() if line.strip() and not line.startswith("<!--")]
        marked = [match for match in map(MARKER.match, lines) if match]
        found += [match.string for match in marked if len(match[1]) % 4]
        if marked and not MARKER.match(lines[0]):
            found.append(marked[0].string)
        if lines and re.match(r" {1,3}\S", lines[0]):
            found.append(lines[0])
        rows = [line for line in lines if line.startswith("|")]
        if rows and not (len(rows) == len(lines) > 1 and re.fullmatch(r"\|[-:| ]+\|", lines[1])):
            found.append(rows[0])
    return found


@pytest.mark.parametrize(
    "text",
    [
        "1. a:\n   * b\n",
        "1. a\n  2. b\n",
        "words:\n* a\n* b\n",
        "* a\n\n    more of a\n* b\n",
        "* a\n\n  not of a\n",
        "| a |\n|---|\n| b |\n* c\n",
        "| a |\n|---|\n| b |\n\n| c |\n",
        "words:\n| a |\n|---|\n",
    ],
)
def test_a_list_or_a_table_that_does_not_render_is_found(text):
    assert faults(text)


def test_lists_and_tables_that_render_are_not_found():
    text = (
        "words:\n\n1. a\n   b\n    * c\n      d\n\n    more of a\n\n2. e\n\n```\n   * f\n```\n\n| g |\n|:--|\n| h |\n"
    )
    assert not faults(text)


def test_the_pages_have_no_faults():
    assert len(PAGES) > 80
    assert {page.name: faults(page.read_text("utf-8")) for page in PAGES if faults(page.read_text("utf-8"))} == {}
