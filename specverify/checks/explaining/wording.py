"""Format numbers and lists for messages: short, and with enough digits to distinguish two different values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

MOST_DIGITS = 15
LONG_ROW, SHOWN_ENTRIES = 16, 8
"""Of a row with more than ``LONG_ROW`` entries only ``SHOWN_ENTRIES`` are shown, with their tokens."""


def short(value: Any, digits: int = 3) -> str:
    """Format the number ``value``: an integer unchanged, another number with ``digits`` significant digits."""
    if isinstance(value, (Fraction, int)) and value == int(value):
        return str(value)
    return f"{float(value):.{digits}g}"


def apart(one: Any, other: Any) -> tuple[str, str]:
    """Format the numbers ``one`` and ``other`` with just enough digits to show that they differ."""
    if one == other:
        return short(one), short(other)
    for digits in range(3, MOST_DIGITS):
        texts = short(one, digits), short(other, digits)
        if texts[0] != texts[1]:
            return texts
    return repr(float(one)), repr(float(other))


def short_row(row: Sequence[Any]) -> str:
    """Format the pmf ``row`` as ``(0.5, 0.5)``.

    A long one is formatted by its largest entries, as ``(17: 0.5, 20: 0.5, others 0)``.
    """
    if len(row) > LONG_ROW:
        return _entries(row, sorted(range(len(row)), key=lambda token: -row[token])[:SHOWN_ENTRIES])
    return "(" + ", ".join(short(value) for value in row) + ")"


def _entries(row: Sequence[Any], tokens: Sequence[int], digits: int = 3) -> str:
    """Format the entries of ``tokens`` in ``row`` that are not 0, with their tokens, and state what the others are."""
    rest = [value for token, value in enumerate(row) if token not in tokens]
    shown = [f"{token}: {short(row[token], digits)}" for token in sorted(tokens) if row[token] != 0 or any(rest)]
    return f"({', '.join([*shown, f'{len(rest)} others' if any(rest) else 'others 0'])})"


def rows_apart(one: Sequence[Any], other: Sequence[Any]) -> tuple[str, str]:
    """Format the rows ``one`` and ``other`` as ``(0.5, 0.5)`` with just enough digits to show that they differ.

    Of long rows the entries that differ most are shown (``short_row``).
    """
    tokens: Sequence[int] = ()
    if len(one) == len(other) > LONG_ROW:
        tokens = sorted(range(len(one)), key=lambda token: -abs(one[token] - other[token]))[:SHOWN_ENTRIES]
    for digits in range(3, MOST_DIGITS):
        texts = tuple(
            _entries(row, tokens, digits) if tokens else "(" + ", ".join(short(value, digits) for value in row) + ")"
            for row in (one, other)
        )
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1]


SHOWN_TOKENS = 8
"""The number of last tokens that are shown of a long text."""


def ends_of(tokens: Sequence[int]) -> str:
    """Format a text as ``0 1 2``; of a long text only the last tokens, as ``... 0 1 2``."""
    end = tokens[-SHOWN_TOKENS:]
    return f"{'... ' * (len(tokens) > len(end))}{' '.join(map(str, end)) or 'nothing'}"


def after_new(new: Sequence[int]) -> str:
    """Return words such as "after new tokens 0, 2" for the new tokens ``new``; "" if there are none."""
    return f"after new token{'s' * (len(new) > 1)} {', '.join(map(str, new))}" if new else ""


def listed(items: Sequence[Any]) -> str:
    """Format items as ``1, 2 and 3``."""
    words = [str(item) for item in items]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the lines of a table with the heading ``head`` and the lines ``rows``.

    Each column is as wide as its widest entry.
    """
    widths = [max(len(line[column]) for line in (head, *rows)) for column in range(len(head))]
    return tuple(
        "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip()
        for line in (head, *rows)
    )


def listed_tokens(tokens: Sequence[int]) -> str:
    """Format tokens as ``0 1 2``; "nothing" if there are none."""
    return " ".join(map(str, tokens)) or "nothing"
