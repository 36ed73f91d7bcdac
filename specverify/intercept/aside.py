"""What is done in a run before the program begins: it is no draw of the program's, so nobody tells of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_ASIDE: list[None] = []


@contextmanager
def aside() -> Iterator[None]:
    """Let what looks for unanswered draws look away inside the block, in all threads."""
    _ASIDE.append(None)
    try:
        yield
    finally:
        _ASIDE.pop()


def is_aside() -> bool:
    """Return whether what runs now is no part of the program."""
    return bool(_ASIDE)
