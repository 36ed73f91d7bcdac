"""Examine subjects in worker processes: each foreign subject in its own, the others in as many as there are jobs.

Every check of every subject gets a verdict even if a process dies: the verdicts before its death, one that reports the
death, and one for each check that was not reached.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Self

from specverify.base.own_time import Clock, own_clock
from specverify.base.parallel import not_interrupted
from specverify.base.verdict import Status, Verdict
from specverify.checks import Check, check_named
from specverify.foreign.places import place_in_report
from specverify.report.progress import Progress
from specverify.run.catalogue import find_subject, is_external
from specverify.run.verify import Checklist, verdict_of
from specverify.run.worker import (
    CUT,
    GRACE,
    Began,
    Loaded,
    Message,
    Refusal,
    Stopped,
    cut_short,
    examine,
    load,
    loaded,
    printed_file,
    replay,
    serve,
)
from specverify.subjects.subject import UnusableSubject

STARTING = 60.0
"""Seconds that a process may take to start, to import and to send its results."""
BETWEEN_CUTS = 0.5
"""Seconds between two truncations of a process's output file."""
ENDING = 2.0
"""Seconds that a process may take to end before it is killed."""
_CONTEXT: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
if hasattr(os, "fork"):  # a server that has imported these, and nothing foreign, makes a process in milliseconds
    _CONTEXT.set_forkserver_preload(["specverify.run.worker", "specverify.cli"])
_STARTED_ONE_BY_ONE = Lock()
_SAFE = "PYTHONSAFEPATH"


class Listed(NamedTuple):
    """The name of a subject, and in ``found`` the data known after loading it, or the reason why loading failed."""

    name: str
    found: Loaded | Stopped


class Worker:
    """A worker process, and the connection to it."""

    def __init__(self) -> None:
        """Start the process, with a file for a report of its death and one for its output."""
        handle, report = tempfile.mkstemp(prefix="specverify-")
        os.close(handle)
        self.busy = False
        self._report = Path(report)
        self.printed = printed_file(report)
        """The file with the beginning of its subjects' printed output; it is kept if it is not empty."""
        self._was_cut = False
        self._line, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=serve, args=(theirs, report, dict(os.environ)))
        with _STARTED_ONE_BY_ONE, _current_folder_left_out():
            self._process.start()
        self._leader: int = self._process.pid
        theirs.close()

    def ask(self, request: Callable[..., None], *given: object, seconds: float) -> Iterator[Message]:
        """Call ``request(*given, seconds, tell)`` in the process, and yield every message that it passes to ``tell``.

        If the process dies, or does not answer for longer than ``seconds`` and some grace, the last message reports
        this.
        """
        self.busy = True
        try:
            self._line.send((partial(request, *given, seconds), seconds))
            now = own_clock(self._leader)
            yield from self._answers(now() + seconds + GRACE + STARTING, now)
            if self.busy:
                yield Stopped(Status.UNKNOWN, f"not finished after {seconds:g} s, and its process does not answer")
        except (EOFError, OSError):
            yield self._death(seconds)

    def _answers(self, until: float, now: Clock) -> Iterator[Message]:
        """Yield the messages that answer a request, up to its last one or to the time ``until`` by the clock ``now``.

        Afterwards the attribute ``busy`` is False if the last message arrived, and True if the time was over.
        """
        while self._answered(until, now):
            message = self._line.recv()
            if message is None:
                self.busy = False
                return
            yield message

    def _answered(self, until: float, now: Clock) -> bool:
        """Return whether a message arrives before ``until`` by the clock ``now``.

        The size of the output file is limited while waiting.
        """
        answered: bool = self._line.poll(0)
        while not answered and (left := until - now()) > 0:
            answered = self._line.poll(min(left, BETWEEN_CUTS))
            self._was_cut |= cut_short(self.printed)
        return answered

    def kill(self) -> None:
        """End the process and its children at once."""
        with suppress(OSError, AttributeError):
            os.killpg(self._leader, signal.SIGKILL)
        with suppress(ValueError):  # it was ended before
            self._process.kill()

    def end(self) -> None:
        """Let the process end by itself, then end its children."""
        self._line.close()
        if not self.busy:
            self._process.join(ENDING)
        self.kill()
        self._process.join()
        self._process.close()
        self._report.unlink(missing_ok=True)
        if cut_short(self.printed) or self._was_cut:
            with self.printed.open("a", encoding="utf-8") as file:
                file.write(CUT)
        elif self.printed.exists() and not self.printed.stat().st_size:
            self.printed.unlink()

    def _death(self, seconds: float) -> Stopped:
        self._process.join(ENDING)
        status, report = self._process.exitcode, self._report.read_text("utf-8", "replace")
        place = place_in_report(report)
        at = f" at {place}" if place else ""
        if report.startswith("Timeout"):
            return Stopped(Status.UNKNOWN, f"not finished after {seconds:g} s, in code that no signal reaches{at}")
        if status is None:
            return Stopped(Status.UNUSABLE, "its process left specverify without a word and went on as something else")
        if status >= 0:
            return Stopped(Status.UNUSABLE, f"its process ended with exit status {status} and without a word{at}")
        memory = ", as the system does when memory runs out" if -status == signal.SIGKILL else ""
        return Stopped(Status.UNUSABLE, f"its process was ended by {signal.Signals(-status).name}{at}{memory}")


@contextmanager
def _current_folder_left_out() -> Iterator[None]:
    """In the ``with`` block, start processes so that they do not import modules of the current folder."""
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE]
        if before is not None:
            os.environ[_SAFE] = before


class Workers:
    """The worker processes of one run; at most ``jobs`` are active at the same time."""

    def __init__(self, jobs: int, seconds: float) -> None:
        """Store the limits: ``jobs`` processes, and ``seconds`` per subject. Start the server of processes, if any."""
        self._jobs, self._seconds, self._ended = jobs, seconds, False
        self._pool = ThreadPoolExecutor(jobs)
        self._all: list[Worker] = []
        self._idle: list[Worker] = []
        self._holding: dict[str, Worker] = {}
        self._ended_ones: list[Worker] = []
        self.known: dict[str, list[Verdict]] = {}
        """Subject -> its verdicts so far, which remain after an interrupt."""
        if hasattr(os, "fork"):
            with not_interrupted(), _current_folder_left_out():
                forkserver.ensure_running()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, busy ones at once."""
        self._ended = True
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._all:
            if worker.busy:
                worker.kill()
        self._pool.shutdown()
        while self._all:
            self._end(self._all[-1])

    @property
    def printed(self) -> list[Path]:
        """Return the files with the subjects' printed output, complete once all processes have ended."""
        return [worker.printed for worker in self._ended_ones if worker.printed.exists()]

    def listed(self, names: Sequence[str]) -> list[Listed]:
        """Return the data of each subject in ``names``, before it is examined.

        Raises ``UnusableSubject`` for an unknown name.
        """
        foreign = {name: self._pool.submit(self._load, name) for name in names if is_external(name)}
        ours = {name: Listed(name, loaded(find_subject(name))) for name in names if name not in foreign}
        return [ours[name] if name in ours else foreign[name].result() for name in names]

    def examined(self, subjects: Sequence[Listed], checklist: Checklist, progress: Progress) -> Iterator[list[Verdict]]:
        """Yield the verdicts of each subject, one per check of ``checklist``, in the order of the subjects.

        ``progress`` is updated when a check begins, examines cases, or ends.
        """
        yield from self._pool.map(lambda subject: list(self._examine(subject, checklist, progress)), subjects)

    def replayed(self, identifier: str) -> Message:
        """Return the verdict on the case of a replay identifier, or the reason why there is none."""
        return next(self._start().ask(replay, identifier, seconds=self._seconds))

    def _load(self, name: str) -> Listed:
        worker = self._start()
        *_, answer = worker.ask(load, name, seconds=self._seconds)
        if isinstance(answer, Loaded) and len(self._holding) < self._jobs:
            self._holding[name] = worker  # others are loaded again when it is their turn
        else:
            self._end(worker)
        if isinstance(answer, Refusal):
            raise UnusableSubject(answer.sentence)
        assert isinstance(answer, (Loaded, Stopped))
        return Listed(name, answer)

    def _examine(self, subject: Listed, checklist: Checklist, progress: Progress) -> Iterator[Verdict]:
        waiting, began = list(checklist.checks), ""
        stopped: Message = subject.found
        if isinstance(subject.found, Loaded):
            worker = self._holding.pop(subject.name, None) or self._start(again=not is_external(subject.name))
            names = tuple(check.name for check in checklist.checks)
            given = (subject.name, names, checklist.conditions, checklist.quick)
            for answer in worker.ask(examine, *given, seconds=checklist.seconds):
                if isinstance(answer, Began):
                    began = answer.check
                    progress.within(subject.name, *answer)
                elif isinstance(answer, Verdict):
                    waiting = [check for check in waiting if check.name != answer.check]
                    progress.done(1, f"{subject.name} {answer.check}", subject.name)
                    self.known.setdefault(subject.name, []).append(answer)
                    yield answer
                else:
                    stopped = answer
            if is_external(subject.name) or worker.busy:
                self._end(worker)
            else:
                self._idle.append(worker)
        for verdict in _unexamined(subject, waiting, stopped, began):
            progress.done(1, f"{subject.name} {verdict.check}")
            yield verdict

    def _start(self, again: bool = False) -> Worker:
        """Return a worker process.

        With ``again`` it may be an idle one that has run no foreign code; otherwise it is new.
        """
        if self._ended:
            raise RuntimeError("the run was interrupted")
        if again and self._idle:
            return self._idle.pop()
        self._all.append(Worker())
        return self._all[-1]

    def _end(self, worker: Worker) -> None:
        self._all.remove(worker)
        worker.end()
        self._ended_ones.append(worker)


def _unexamined(subject: Listed, checks: Sequence[Check], stopped: Message, began: str) -> Iterator[Verdict]:
    """Yield the verdicts of the ``checks`` of ``subject`` that did not finish.

    The first verdict is that of ``began``, the check that was running. ``stopped`` is the reason why the process
    stopped.
    """
    if began not in {"", *(check.name for check in checks)} and isinstance(stopped, Stopped):
        checks = (check_named(began), *checks)
    inapplicable = {verdict.check: verdict for verdict in getattr(subject.found, "inapplicable", ())}
    for check in checks:
        if check.name in inapplicable:
            yield inapplicable[check.name]
        elif not isinstance(stopped, Stopped):
            yield verdict_of(subject.name, check, Status.UNUSABLE, "its process returned no verdict")
        elif not began or check.name == began:
            yield verdict_of(subject.name, check, stopped.status, stopped.statement)
        else:
            yield verdict_of(
                subject.name, check, stopped.status, f"not reached: its process did not come back from {began}"
            )
