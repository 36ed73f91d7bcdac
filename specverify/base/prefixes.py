"""Token sequences that begin alike, or of which one has further tokens."""

from __future__ import annotations

from collections.abc import Sequence


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of ``one`` and ``other``."""
    shorter = min(len(one), len(other))
    return next((place for place in range(shorter) if one[place] != other[place]), shorter)


def begins(text: tuple[int, ...], beginning: tuple[int, ...]) -> bool:
    """Return whether ``text`` begins with ``beginning``."""
    return text[: len(beginning)] == beginning


def inserted(longer: tuple[int, ...], text: tuple[int, ...], prompt: tuple[int, ...]) -> tuple[int, ...]:
    """Return the tokens whose insertion in ``text``, at one position, gives ``longer``; () if there are none.

    The position is after ``prompt`` and before the end of ``text``.
    """
    more = len(longer) - len(text)
    if more <= 0 or len(text) <= len(prompt):
        return ()
    for start in range(len(prompt), len(text)):
        if longer[:start] == text[:start] and longer[start + more :] == text[start:]:
            return longer[start : start + more]
    return ()
