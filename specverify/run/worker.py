"""A process that examines subjects for another process and sends each verdict as soon as it is known.

A subject can damage only this process. If the process dies, the verdicts that it has sent remain, and the cause of its
death is determined from its exit status and the output of ``faulthandler``. A watchdog outside Python ends the process
at the time limit, even if it is in code that no signal reaches.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, TextIO

from specverify.base.own_time import own_clock
from specverify.base.process import Changes
from specverify.base.verdict import Status, Verdict
from specverify.checks import CHECKS, Conditions, checks_named
from specverify.checks.forgetting import forget_laws
from specverify.checks.samples_fit_law import tests_of
from specverify.engines import found_engines
from specverify.foreign.guard import guarded
from specverify.foreign.limit import PROLONGED
from specverify.foreign.places import sentence_of
from specverify.run.catalogue import find_subject
from specverify.run.replays import named_by
from specverify.run.verify import Checklist, not_applicable, run_case, unready, verify_subject, warmed_up, with_changes
from specverify.subjects.subject import Subject, UnusableSubject

GRACE = 3.0
"""Seconds beyond the time limit after which a subject that no signal reaches is ended with its process."""


class Loaded(NamedTuple):
    """The data about a subject that is known after loading and before any check.

    ``summary`` describes the subject in a sentence.
    """

    summary: str
    tests: int
    """The number of statistical tests of its samples, among which the alarm budget is divided."""
    inapplicable: tuple[Verdict, ...]
    """The verdicts of the checks that do not apply."""


class Refusal(NamedTuple):
    """A message: the subject does not exist or cannot be examined. ``sentence`` is the reason."""

    sentence: str


class Stopped(NamedTuple):
    """A message: the subject ended its process, or reached its time limit.

    The checks that did not finish get the verdict with this ``status`` and ``statement``.
    """

    status: Status
    statement: str


class Began(NamedTuple):
    """A message: a check has begun, or ``examined`` of its ``cases`` cases have been examined.

    ``cases`` is 0 if the number of cases is unknown.
    """

    check: str
    examined: int = 0
    cases: int = 0


Message = Loaded | Refusal | Stopped | Began | Verdict
Tell = Callable[[Message], None]


class _OpenedSubject(NamedTuple):
    subject: Subject
    seconds: float
    """The loading time in seconds, by the clock of time limits."""
    changes: Changes


_opened: dict[str, _OpenedSubject] = {}


def serve(line: Connection, report: str, environment: Mapping[str, str]) -> None:
    """Answer the requests on ``line`` until it is closed; a fatal error is written to the file ``report``.

    ``environment`` are the environment variables to use.
    """
    os.environ.clear()
    os.environ.update(environment)  # the server that this was forked from has one of its own
    if hasattr(os, "setsid"):
        os.setsid()  # what a subject starts is ended with it, and an interrupt from the terminal is for the other end
        signal.signal(signal.SIGINT, signal.default_int_handler)  # the server ignores it; a subject may raise it
    with Path(report).open("w", encoding="utf-8") as file, suppress(EOFError, OSError):
        faulthandler.enable(file)
        _keep_apart(printed_file(report))
        found_engines()  # looked for once, in nobody's time
        while True:
            request, seconds = line.recv()
            PROLONGED.set(_ended_after(seconds, file))
            try:
                request(line.send)
            except Exception as error:  # noqa: BLE001 - of ours or of the subject's, it is told and not passed
                line.send(Stopped(Status.UNUSABLE, sentence_of(error)))
            faulthandler.cancel_dump_traceback_later()
            line.send(None)


def _ended_after(seconds: float, file: TextIO) -> Callable[[float], None]:
    """End this process after ``seconds`` and a period of grace, even in code that no signal can interrupt.

    The report of the end is written to ``file``. Return the function ``prolonged(left)``: it postpones the end if less
    than ``left`` seconds and the grace remain.
    """
    until = time.monotonic() + seconds + GRACE
    faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=file)

    def prolonged(left: float) -> None:
        nonlocal until
        if time.monotonic() + left + GRACE > until:
            until = time.monotonic() + left + GRACE
            faulthandler.dump_traceback_later(left + GRACE, exit=True, file=file)

    return prolonged


def printed_file(report: str) -> Path:
    """Return the file with the printed output of a process; ``report`` is the file for the report of its death."""
    return Path(f"{report}.printed.txt")


MOST_PRINTED = 1 << 20
"""The largest size in bytes of the printed output of one process."""
CUT = "\nspecverify: further output was discarded\n"


def cut_short(file: Path) -> bool:
    """Truncate ``file`` to ``MOST_PRINTED`` bytes; return whether it was longer.

    Another process may be writing to the file at the same time.
    """
    if not file.exists() or file.stat().st_size <= MOST_PRINTED:
        return False
    os.truncate(file, MOST_PRINTED)
    return True


def _keep_apart(file: Path) -> None:
    """Redirect all printed output of this process to the end of ``file``.

    The file is opened for appending, so another process may truncate it meanwhile.
    """
    opened = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(opened, stream)
    os.close(opened)
    for text in (sys.stdout, sys.stderr):
        text.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # of the interpreter's own, as they still are


def load(name: str, seconds: float, tell: Tell) -> None:
    """Load the subject ``name`` within ``seconds``, and pass the data known before any check (``Loaded``) to ``tell``.

    If it cannot be loaded, the reason is passed instead.
    """
    opened = _open(name, seconds)
    tell(loaded(opened.subject) if isinstance(opened, _OpenedSubject) else opened)


def examine(
    name: str, checks: tuple[str, ...], conditions: Conditions, quick: bool, seconds: float, tell: Tell
) -> None:
    """Run ``checks`` on the subject ``name`` within ``seconds``, and send each verdict by ``tell``.

    Before each check, a message ``Began`` is sent. ``quick``: only the cases of the quick plan are examined. If the
    subject cannot be loaded, only the reason is sent. ``conditions`` are the settings of the checks.
    """
    opened = _open(name, seconds)
    if not isinstance(opened, _OpenedSubject):
        tell(opened)
        return
    checklist = Checklist(checks_named(checks), conditions, seconds, quick)
    progress = lambda check, examined, cases: tell(Began(check, examined, cases))  # noqa: E731
    for verdict in verify_subject(opened.subject, checklist, progress, opened.seconds, opened.changes):
        tell(verdict)
    forget_laws()


def replay(identifier: str, seconds: float, tell: Tell) -> None:
    """Repeat the case of a replay identifier within ``seconds``, and send its verdict by ``tell``.

    If there is no such case, or its subject cannot be loaded in time, the reason is sent instead.
    """
    now = own_clock()
    try:
        result = guarded(partial(named_by, identifier, ready_subject), seconds)
    except (ValueError, UnusableSubject) as error:
        tell(Refusal(sentence_of(error) if isinstance(error, UnusableSubject) else str(error)))
        return
    spent = now()
    if result.result is None:
        tell(Stopped(*unready(result, "loaded", seconds)))
        return
    tell(with_changes(run_case(*result.result, max(seconds - spent, 1e-3)), result.changes))


def ready_subject(name: str) -> Subject:
    """Return the subject ``name`` after a first run, its warm-up, so that lazy initialisation does not affect checks.

    Raises ``UnusableSubject`` if there is no subject of this name.
    """
    return warmed_up(find_subject(name))


def _open(name: str, seconds: float) -> _OpenedSubject | Refusal | Stopped:
    """Return the subject ``name``, or the reason why it cannot be loaded.

    It is loaded at the first call, within ``seconds``, and returned unchanged by later calls.
    """
    if name not in _opened:
        now = own_clock()
        try:
            result = guarded(partial(find_subject, name), seconds)
        except UnusableSubject as error:
            return Refusal(sentence_of(error))
        spent = now()
        if result.result is None:
            return Stopped(*unready(result, "loaded", seconds))
        faults = tuple(f"{fault} when it is loaded" for fault in result.changes.faults)
        _opened[name] = _OpenedSubject(result.result, spent, Changes(faults))
    return _opened[name]


def loaded(subject: Subject) -> Loaded:
    """Return the summary of a subject, its number of statistical tests, and the verdicts of the inapplicable checks."""
    verdicts = [not_applicable(subject, check, "") for check in CHECKS]
    return Loaded(
        subject.summary,
        sum(tests_of(setting) for setting in subject.settings),
        tuple(verdict for verdict in verdicts if verdict is not None),
    )
