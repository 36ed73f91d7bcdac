"""HTML built from elements. A string is text and is escaped; only ``Markup`` is inserted unchanged."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple, TypeAlias

from specverify.report.runs.said import printable


class Markup(NamedTuple):
    """A piece of HTML, which is not escaped again."""

    text: str


Content: TypeAlias = str | Markup
VOID = frozenset({"meta", "col", "br"})


def element(tag: str, /, *content: Content, **attributes: str | float | None) -> Markup:
    """Return the HTML element ``tag`` with content and attributes.

    ``class_`` is the attribute class, other underscores become dashes; None omits an attribute.
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    named = "".join(f' {key}="{readable(str(value))}"' for key, value in given.items())
    if tag in VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{joined(content).text}</{tag}>")


def joined(content: Iterable[Content]) -> Markup:
    """Return the pieces of content, concatenated; strings are escaped."""
    return Markup("".join(item.text if isinstance(item, Markup) else readable(item) for item in content))


def readable(text: str) -> str:
    """Return a text escaped for HTML, without invalid characters and without characters that reorder text."""
    return escape(printable(text, "\n"))


def scrolling(label: str, content: Content) -> Markup:
    """Return ``content``, which may be wider than the page, in a region that scrolls, also by keyboard.

    ``label`` is the name of the region for screen readers.
    """
    return element("div", content, class_="wide", role="group", tabindex="0", aria_label=label)


def table(
    caption: str, heads: Iterable[Content], rows: Iterable[Iterable[Content]], class_: str | None = None
) -> Markup:
    """Return an HTML table with a ``caption``, column headings ``heads`` and ``rows``.

    The first cell of each row is a heading. ``class_`` is the class of the table.
    """
    head = element("tr", *(element("th", item, scope="col") for item in heads))
    lines = []
    for first, *rest in rows:
        cells = [element("th", first, scope="row"), *(element("td", item) for item in rest)]
        lines.append(element("tr", *cells))
    return element(
        "table", element("caption", caption), element("thead", head), element("tbody", *lines), class_=class_
    )


def with_spoken_text(shown: str, said: str) -> Markup:
    """Return the sign ``shown``, hidden from screen readers, and the text ``said``, which only they read."""
    return joined((element("span", shown, aria_hidden="true"), element("span", said, class_="unseen")))
