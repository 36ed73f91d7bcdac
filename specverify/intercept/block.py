"""The block in which foreign code runs: what was refused in it, and what was seen that nobody answered.

A refusal ends the enumeration even if the foreign code swallows it (``except Exception``) or it was raised in a thread:
the block raises it again at its end. Calls that the standard library makes for itself, for the name of a temporary file
or the boundary of a mail, are not the subject's and are left alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from specverify.intercept.caller import NOWHERE, is_ours_or_answered, is_own, standard_library
from specverify.intercept.refusals import REASONS, Declined
from specverify.intercept.run import RUNS, Block

_HOUSEKEEPING = {"tempfile.py", "imaplib.py", "mailbox.py", "smtplib.py"}
_HOUSEKEEPING_PACKAGES = {"email", "http", "multiprocessing", "urllib"}
"""Modules of the standard library that draw names nobody's tokens depend on."""


def current() -> Block | None:
    """Return the innermost block that is open, whatever the thread."""
    return RUNS.blocks[-1] if RUNS.blocks else None


@contextmanager
def open_block() -> Iterator[Block]:
    """Open a block. At its end the first refusal is raised again if another exception, or none, came out."""
    block = Block()
    RUNS.blocks.append(block)
    try:
        yield block
    except Exception as error:
        if not block.refusals or any(error is refusal for refusal in block.refusals):
            raise
        raise block.refusals[0] from error
    finally:
        block.over = True
        RUNS.blocks.remove(block)
    if block.refusals:
        raise block.refusals[0]


def refused(error: Exception) -> None:
    """Note a refusal in the open block, and the line that it came from."""
    if RUNS.blocks:
        RUNS.blocks[-1].refusals.append(error)


@contextmanager
def gifts_kept() -> Iterator[dict[str, None]]:
    """Yield what grows by every number that is given to the foreign code as it is, inside the block."""
    kept: dict[str, None] = {}
    RUNS.gifts.append(kept)
    try:
        yield kept
    finally:
        RUNS.gifts.remove(kept)


def give(what: str) -> None:
    """Say that a number is given to the foreign code as it is."""
    for kept in RUNS.gifts:
        kept[what] = None


@contextmanager
def tried() -> Iterator[None]:
    """Forget what is refused inside: it is tried, and done again where it fails."""
    block = current()
    before = len(block.refusals) if block else 0
    try:
        yield
    finally:
        if block:
            del block.refusals[before:]


def in_housekeeping() -> bool:
    """Return whether the standard library asks for itself, or this package does: a table that makes its next row."""
    frame: Any = sys._getframe(1)  # noqa: SLF001
    while frame is not None and is_ours_or_answered(frame.f_code.co_filename):
        if is_own(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    parts = standard_library(frame.f_code.co_filename) if frame is not None else ()
    return bool(parts) and (parts[0] in _HOUSEKEEPING or parts[0] in _HOUSEKEEPING_PACKAGES)


class NeedsValue(Exception):  # noqa: N818 - reads as the sentence it is
    """A refusal: a code of ``refusals.REASONS``, what was asked, the operation, its place and a way out."""

    def __init__(self, code: str, reason: str, operation: str = "", place: str = "", way_out: str = "") -> None:
        """Refuse for a ``reason``, a sentence; the open block takes note, so that nobody can swallow it.

        ``operation`` and ``place``, file and line, may be found out on the way: see ``during``. Without a ``way_out``
        it is that of the code.
        """
        super().__init__(code, reason, operation, place, way_out)
        self.code, self.reason, self.operation, self.place = code, reason, operation, place
        self.way_out, self._explained = way_out or REASONS[code].way_out, False
        refused(self)

    def __str__(self) -> str:
        """Say it in one sentence: operation, place, reason, way out."""
        if not self.operation or not self.place or self.place in self.reason:
            return self.reason if not self.place or self.place in self.reason else f"{self.reason}, at {self.place}"
        return f"{self.operation} at {self.place}: {self.reason}; {self.way_out}"

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.reason, self.operation, self.place, self.way_out)

    def at(self, place: str) -> NeedsValue:
        """Say that it was asked at a place, if that is not known."""
        self.place = self.place or ("" if place == NOWHERE else place)
        return self

    def during(self, operation: str, place: str) -> NeedsValue:
        """Say which operation of the author's library asked, and where; the innermost one and its line stay."""
        if not self.operation and self.place in {"", place}:
            self.operation = operation
        return self.at(place)

    def because(self, declined: Declined) -> NeedsValue:
        """Add why no rule applied, where the value is needed for that; the innermost reason stays."""
        if self.code == "value-needed" and not self._explained:
            self.reason, self._explained = f"{self.reason}: {declined.reason}", True
        return self

    def again(self) -> NeedsValue:
        """Return the same refusal, to be raised anew: the open block takes note of it."""
        return NeedsValue(self.code, self.reason, self.operation, self.place, self.way_out)
