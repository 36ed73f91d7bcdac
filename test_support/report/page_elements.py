"""An HTML page as a list of its elements, parsed by the standard library."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

VOID = frozenset({"meta", "link", "br", "img", "hr", "input", "col"})


class Found(NamedTuple):
    """An HTML element."""

    tag: str
    attributes: dict
    within: tuple
    """The elements around it, the outermost first."""
    text: list


class Page(HTMLParser):
    """Parser that lists all elements of a page in order; raises for an element that is not closed where it must be."""

    def __init__(self, text):
        """Parse the whole text."""
        super().__init__(convert_charrefs=True)
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, [item.tag for item in self.open]

    def handle_starttag(self, tag, attrs):
        """Record an element."""
        found = Found(tag, dict(attrs), tuple(self.open), [])
        self.elements.append(found)
        if tag not in VOID:
            self.open.append(found)

    def handle_endtag(self, tag):
        """Close the element that was opened last."""
        assert self.open.pop().tag == tag, tag

    def handle_data(self, data):
        """Add a piece of text to every element that contains it."""
        self.texts.append(data)
        for item in self.open:
            item.text.append(data)

    def all(self, *tags):
        """Return all elements with these tags."""
        return [item for item in self.elements if item.tag in tags]


def text_of(found):
    return "".join(found.text)
