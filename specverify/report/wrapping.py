"""Wrap printed lines to the width of the terminal. Output to a pipe or a file stays unwrapped.

Two spaces separate the parts of a line. A line breaks between parts if possible, else between words. The line with the
replay command is not wrapped, so that the user can copy it. A single word that is longer than a line is not broken.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

_HEAD = re.compile(r" *(?:(?:Let|Then) +)?")
_PARTS = re.compile(r"(?<=\S) {2,}(?=\S)")
"""Matches the two or more spaces between parts of a line, such as p and q, a path and its weight, or numbers."""
_GAP = "   "
_COPIED = "  Again "


def say(console: Console, text: str, style: str = "") -> None:
    """Print ``text`` on ``console`` in a ``style`` of ``rich``, wrapped to the width of a terminal, else unchanged."""
    console.print(Text(wrapped(text, width_of(console)), style=style), soft_wrap=True)


def width_of(console: Console) -> int:
    """Return the width of ``console`` in columns; 0 if it is not a terminal but a pipe or a file."""
    return console.width if console.is_terminal else 0


def wrapped(text: str, width: int, indent: str | None = None) -> str:
    """Return ``text`` with each line that is longer than ``width`` columns wrapped; with a width of 0, unchanged.

    Continuation lines begin with ``indent``; None means two spaces more than the indentation of the line.
    """
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width, indent))


def _pieces(line: str, width: int, indent: str | None) -> Iterator[str]:
    if not width or len(line) <= width or line.startswith(_COPIED):
        yield line
        return
    head = _HEAD.match(line)
    behind = " " * ((head.end() if head else 0) + 2) if indent is None else indent
    ready = ""
    end = head.end() if head else 0
    first, *others = _PARTS.split(line[end:]) if indent is None else (line[end:],)
    for part in (line[:end] + first, *others):
        gap = _GAP if ready else ""
        if ready and len(ready + gap + part) > width >= len(behind + part):
            yield ready
            ready = behind + part
        else:
            *full, ready = _filled(ready + gap + part, width, behind)
            yield from full
    yield ready


def _filled(line: str, width: int, behind: str) -> list[str]:
    """Return the pieces of a line, wrapped between words to ``width``.

    Each piece after the first begins with ``behind``.
    """
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=behind,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    ) or [""]
