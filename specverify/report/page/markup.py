"""HTML put together from elements: a string is text and is escaped, whatever is in it; only elements are markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import NamedTuple, TypeAlias

from specverify.report.runs.said import printable


class Markup(NamedTuple):
    """A piece of HTML."""

    text: str


Content: TypeAlias = str | Markup
VOID = frozenset({"meta", "col", "br"})


def element(tag: str, /, *content: Content, **attributes: str | float | None) -> Markup:
    """Return an element. ``class_`` is the attribute class, other underscores are dashes; None leaves one out."""
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    named = "".join(f' {key}="{readable(str(value))}"' for key, value in given.items())
    if tag in VOID:
        return Markup(f"<{tag}{named}>")
    return Markup(f"<{tag}{named}>{joined(content).text}</{tag}>")


def joined(content: Iterable[Content]) -> Markup:
    """Return several pieces as one."""
    return Markup("".join(item.text if isinstance(item, Markup) else readable(item) for item in content))


def readable(text: str) -> str:
    """Return a text as it stands in HTML: escaped, and without what no document may hold or what turns its order."""
    return escape(printable(text, "\n"))


def scrolling(label: str, content: Content) -> Markup:
    """Return what may be wider than the page, in a place of its own that the keyboard reaches."""
    return element("div", content, class_="wide", role="group", tabindex="0", aria_label=label)


def table(
    caption: str, heads: Iterable[Content], rows: Iterable[Iterable[Content]], class_: str | None = None
) -> Markup:
    """Return a table, whose rows begin with their heading."""
    head = element("tr", *(element("th", item, scope="col") for item in heads))
    lines = []
    for first, *rest in rows:
        cells = [element("th", first, scope="row"), *(element("td", item) for item in rest)]
        lines.append(element("tr", *cells))
    return element(
        "table", element("caption", caption), element("thead", head), element("tbody", *lines), class_=class_
    )


def spoken(shown: str, said: str) -> Markup:
    """Return a sign, with words for who cannot see it."""
    return joined((element("span", shown, aria_hidden="true"), element("span", said, class_="unseen")))
