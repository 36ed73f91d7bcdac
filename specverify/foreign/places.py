"""Find the line of foreign code to report: in a traceback, an active frame, or the crash report of a process."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

from specverify import reference
from specverify.intercept.caller import file_of, standard_library
from specverify.intercept.caller import is_ours_or_answered as is_library
from specverify.subjects.checked_calls import given_when_raised
from specverify.subjects.subject import UnusableSubject

FileLine = tuple[str, int]
"""The name of a file and a line number."""

GIVEN = ", given "
"""Separates an error's sentence from the arguments of the call that raised the error."""

_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Names of the folders of installed packages."""
_OWN = (Path(__file__).parents[1], Path(reference.__file__).parent, Path(reference.__file__).resolve().parent)
_REPORTED = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+) in ')


def place_of_error(trace: TracebackType | None) -> str:
    """Return ``file:line`` of the innermost foreign frame of the traceback ``trace``.

    If no frame is foreign, it is the innermost frame outside specverify, or if there is none, the innermost frame. The
    result is "unknown place" if ``trace`` is None. If the frame belongs to an installed package, the line that called
    it follows: the innermost foreign frame outside installed packages.
    """
    places = [(file_of(frame), line) for frame, line in traceback.walk_tb(trace)]
    place, caller = innermost(places), _foreign(each for each in places if not is_installed(each[0]))
    return f"{place} called from {caller}" if caller not in {"", place} else place


def sentence_of(error: BaseException, otherwise: str | None = None) -> str:
    """Return an error as one sentence: type, message, ``file:line`` in the foreign code, and the call's arguments.

    ``otherwise`` stands for ``file:line`` if no frame is foreign ("" leaves it out); None: the innermost frame. The
    place of an ``UnusableSubject`` may also be that of its cause.
    """
    if isinstance(error.__cause__, StopIteration):  # Python makes a RuntimeError of one that a generator of ours meets
        error = error.__cause__
    message = " ".join(str(error).split())
    if isinstance(error, UnusableSubject):  # in our words already: the place is told if it is theirs
        place = _foreign_in(error) or (_foreign_in(error.__cause__) if error.__cause__ else "")
        return f"{message} ({place})" if place else message
    if isinstance(error, ValueError) and "read-only" in message:
        message += ", because it writes into an argument array; copy the array first"
    line = otherwise if otherwise is not None and not _foreign_in(error) else place_of_error(error.__traceback__)
    told = f"{type(error).__name__}{f': {message}' if message else ''}{f' ({line})' if line else ''}"
    return f"{told}{GIVEN}{given}" if (given := given_when_raised(error)) else told


def place_of_frame(frame: FrameType | None) -> str:
    """Return ``file:line`` of the innermost foreign frame among ``frame`` and its callers; "" if there is none."""
    running = [(file_of(result), line) for result, line in traceback.walk_stack(frame)] if frame else []
    return _foreign(reversed(running))


def place_in_report(report: str) -> str:
    """Return ``file:line`` of the innermost foreign frame in a report of ``faulthandler``; "" if there is none.

    If the report has several threads, the thread that crashed is used, else the thread that examined a subject.
    """
    threads = re.split(r"\n\s*\n", report)
    return _foreign(_reported(max(threads, key=lambda thread: ("Current thread" in thread, _ours_in(thread)))))


def innermost(places: Iterable[FileLine]) -> str:
    """Return ``file:line`` of the innermost foreign place of ``places``, pairs (file, line), the outermost first.

    If no place is foreign, return the last place outside specverify, and if there is none, the last place; "unknown
    place" if ``places`` is empty. Foreign means: not in specverify, NumPy, torch or the standard library.
    """
    listed = list(places)
    others = [place for place in listed if not is_ours(place[0])] or listed
    return _foreign(listed) or (file_and_line(others[-1]) if others else "unknown place")


def file_and_line(place: FileLine) -> str:
    """Return ``place``, a pair (file, line), as ``file:line``, where ``file`` is the file's name without its folder."""
    return f"{Path(place[0]).name}:{place[1]}"


@cache
def is_ours(filename: str) -> bool:
    """Return whether the file ``filename`` belongs to specverify or to the reference algorithms.

    Files of planted bugs do not belong to them.
    """
    path = Path(filename)
    return any(path.is_relative_to(folder) for folder in _OWN) and not path.is_relative_to(_OWN[0] / "mutants")


def is_foreign(filename: str) -> bool:
    """Return whether the file ``filename`` is outside specverify, NumPy, torch and the standard library."""
    if is_ours(filename) or filename.startswith("<frozen"):
        return False
    return not (is_library(filename) or standard_library(filename))


@cache
def is_installed(filename: str) -> bool:
    """Return whether the file ``filename`` belongs to an installed package."""
    return not _INSTALLED.isdisjoint(Path(filename).parts)


def _foreign_in(error: BaseException) -> str:
    return _foreign((file_of(frame), line) for frame, line in traceback.walk_tb(error.__traceback__))


def _foreign(places: Iterable[FileLine]) -> str:
    foreign = [place for place in places if is_foreign(place[0])]
    return file_and_line(foreign[-1]) if foreign else ""


def _reported(thread: str) -> list[FileLine]:
    """Return the places in the report of one thread by ``faulthandler``, outermost first."""
    result = [(match["file"], int(match["line"])) for match in _REPORTED.finditer(thread)]
    return result[::-1]


def _ours_in(thread: str) -> int:
    return sum(is_ours(file) for file, _ in _reported(thread))
