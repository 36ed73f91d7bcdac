"""A run as Markdown: no name can leave its place."""

from __future__ import annotations

import re

import pytest

from specverify.report.runs.as_markdown import fenced, plain, run_as_markdown
from test_support.report import runs

KINDS = tuple(runs.TEXTS)


@pytest.mark.parametrize("kind", KINDS)
def test_markdown_takes_names_for_names(kind):
    text = run_as_markdown(runs.run_of(kind))
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {5}


def test_markdown_cannot_be_left():
    assert plain("<b>\n*a* `b` |") == r"&lt;b&gt; \*a\* \`b\` \|"
    assert fenced("a\n````\nb") == "`````text\na\n````\nb\n`````"
