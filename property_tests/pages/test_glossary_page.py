"""``docs/glossary.md`` says of each word what ``specverify explain`` says."""

from __future__ import annotations

from pathlib import Path

from specverify.run.explain import explained, glossary
from tools.pages.glossary_page import HEADING, with_words

PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text("utf-8")


def test_the_page_has_the_words_of_the_command():
    assert with_words(PAGE) == PAGE, "run: python -m tools.pages.glossary_page docs/glossary.md"
    assert all(explained(word).split(": ", 1)[1].split("\n")[0] in PAGE for word in glossary())


def test_a_word_that_was_changed_on_the_page_is_noticed():
    changed = PAGE.replace("to be followed", "to be obeyed")
    assert changed.count(HEADING) == 1
    assert with_words(changed) != changed
