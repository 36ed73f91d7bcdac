"""A time limit, with a description of what the subject was doing when the time was over.

The limit does not include the time in which the subject waits for a processor (``base.own_time``), so that other
programs on the machine do not decide a verdict.

In the main thread a signal ends the subject, even in a sleep or a wait. In another thread an asynchronous exception is
raised at the next line of Python; a blocking call is not interrupted. Neither can end a single call of C that ignores
signals, or a loop that catches ``BaseException`` and continues. Such code needs a process of its own (``worker``).
"""

from __future__ import annotations

import ctypes
import gc
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from time import monotonic  # by name: foreign code is run at other times, and this goes on
from traceback import walk_stack
from types import FrameType

from specverify import intercept
from specverify.base.own_time import Clock, own_clock
from specverify.foreign.draws_made import draws_made, run_of
from specverify.foreign.loops import MONITORED, LoopWatch
from specverify.foreign.places import is_foreign, is_installed, is_ours, place_of_frame
from specverify.intercept.caller import file_of, standard_library

_WATCHED = 0.25
"""The last quarter of the time limit, in which the subject's activity is sampled."""
_LOOKS = 10
_PATIENCE, _SOON = 50, 0.02
"""Number of times that the interruption is postponed after the limit, and the seconds of each postponement.
It is postponed while code of specverify runs, or code whose exceptions Python ignores. After that, it is postponed as
often again while specverify enters or leaves a context manager: interrupted there, functions of libraries would stay
replaced for the next subject."""
_IMPORTS = 1500
"""Number of times that the interruption is postponed during the import of an installed package.
An interrupted import breaks the package for later code."""
_AGAIN = 1.0
"""Seconds until the exception is raised again in code that caught it."""
OURS = 1e6 + 0.25
"""Interval of the limit's timer in seconds, never reached: a mark that tells this timer from one that a subject sets.
"""
PROLONGED: ContextVar[Callable[[float], None]] = ContextVar("prolonged", default=lambda left: None)
"""``prolonged(left)`` is called now and then while a limit runs, with the seconds that are left of it."""
_INTERCEPT = Path(str(intercept.__file__)).parent


class OutOfTime(BaseException):
    """The time limit was reached; the message describes what the subject was doing.

    ``except Exception`` does not catch it.
    """


class LoopsWithoutDrawing(OutOfTime):
    """A loop has had too many iterations without a draw; the message names the loop."""


@contextmanager
def time_limit(seconds: float, *, watch_loops: bool = False) -> Iterator[None]:
    """In the ``with`` block, raise ``OutOfTime`` after ``seconds``, measured by ``own_clock``.

    This clock does not count the time in which the subject waits for a processor. If the subject catches the exception,
    it is raised again every second and at the end of the block. With ``watch_loops``, raise ``LoopsWithoutDrawing`` as
    soon as a loop has had too many iterations without a draw.
    """
    observer = _ActivityWatcher(seconds, own_clock())
    PROLONGED.get()(seconds)
    with _limited(observer, watch_loops=watch_loops):
        yield


@contextmanager
def _limited(observer: _ActivityWatcher, *, watch_loops: bool) -> Iterator[None]:
    main = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")
    if watch_loops and (main or MONITORED):
        observer.watch_loops(threading.get_ident())
    try:
        with (_by_signal if main else _by_exception)(observer):
            yield
    except BaseException:
        if observer.said:
            raise observer.reason() from None
        raise
    finally:
        observer.leave_loops()
    if observer.said:
        raise observer.reason()


class _ActivityWatcher:
    """Samples what the subject does in the last quarter of its time limit, and describes it in one sentence."""

    def __init__(self, seconds: float, now: Clock) -> None:
        self.now = now
        self.latest = math.inf
        """The time, by ``monotonic``, at which the limit ends in any case."""
        self.watched = seconds * _WATCHED
        self.deadline = now() + seconds
        self.next = self.deadline - self.watched
        self.said = ""
        self._loops: LoopWatch | None = None
        self._loop_found = False
        self._thread = 0
        self._run: object = None
        self._draws: object = 0
        self._looks, self._drew, self._imports = 0, False, _IMPORTS
        draws_made(None)  # finds the memory of the generators, which takes a lock that a signal must not wait for
        self._patience = self._patience_of_contexts = _PATIENCE

    def watch_loops(self, thread: int) -> None:
        """Begin to count the iterations of loops without draws in ``thread``, the id of a thread."""
        self._loops, self._thread = LoopWatch(self._stop), thread

    def leave_loops(self) -> None:
        """Stop counting the iterations of loops."""
        if self._loops is not None:
            self._loops.end()
            self._loops = None

    def reason(self) -> OutOfTime:
        """Return the exception to raise in the subject; its message describes what the subject was doing."""
        return (LoopsWithoutDrawing if self._loop_found else OutOfTime)(self.said)

    def _stop(self, loop: str) -> None:
        """End the subject because of an endless loop, which the sentence ``loop`` describes.

        Called in the thread that loops.
        """
        if not self.said:
            self.said, self._loop_found = loop, True
        self.deadline = self.now()
        self.next = self.deadline + _AGAIN
        raise self.reason()

    def wait(self) -> float:
        """Return in how many seconds ``is_over`` must be called again."""
        latest = self.latest if self._loops is None else min(self.latest, self._loops.next)
        return max(min(self.next - self.now(), latest - monotonic()), 1e-4)

    def is_over(self, frame: FrameType | None) -> bool:
        """Record what the subject does at its active ``frame``; return whether its time limit is reached.

        If so, the attribute ``said`` afterwards describes in one sentence what the subject was doing.
        """
        over = self._is_over(frame)
        if not over:
            PROLONGED.get()(max(self.deadline - self.now(), 0.0))
        return over

    def _is_over(self, frame: FrameType | None) -> bool:
        if self._loops is not None and monotonic() >= self._loops.next:
            self._loops.look(frame, self._thread, importing=_is_importing(frame))
        now = self.now()
        if monotonic() >= self.latest:
            self.deadline = self.next = min(self.deadline, now)
        if now < self.next:
            return False
        run = run_of(frame)
        draws = draws_made(run)
        self._drew |= _is_answering(frame) or (self._looks > 0 and (run is not self._run or draws != self._draws))
        self._run, self._draws, self._looks = run, draws, self._looks + 1
        over = now >= self.deadline
        if over and self.is_postponed(frame):
            return False
        self.next = now + _AGAIN if over else min(now + self.watched / _LOOKS, self.deadline)
        self.said = self.said or (self._describe_state(frame) if over else "")
        return over

    def is_postponed(self, frame: FrameType | None) -> bool:
        """Return whether the subject must not be interrupted at ``frame``; if so, ``is_over`` asks again soon."""
        if self._patience and (_is_in_ours(frame) or _is_ignoring(frame)):
            self._patience -= 1
        elif self._patience_of_contexts and _is_entering_or_leaving(frame):
            self._patience_of_contexts -= 1
        elif self._imports and _is_importing(frame):
            self._imports -= 1
        else:
            return False
        self.next = self.now() + _SOON
        return True

    def _describe_state(self, frame: FrameType | None) -> str:
        place = place_of_frame(frame)
        if not place:
            return "specverify was at work between two of its calls"
        if self._run is None:
            stood = "moved" if self._drew else "stood still" if self._looks > 1 else "were not seen"
            return f"it was at {place}, and the generators of random, NumPy and torch {stood}"
        made = f"{self._draws} draw{'' if self._draws == 1 else 's'} into the run going on"
        if self._drew:
            return f"it was drawing, at {place}, {made}"
        if self._looks < 2:
            return f"it was at {place}, {made}"
        return f"it was looping or waiting, not drawing, at {place}, {made} and none in the last {self.watched:.2g} s"


@contextmanager
def _by_signal(observer: _ActivityWatcher) -> Iterator[None]:
    left = False

    def tick(_: int, frame: FrameType | None) -> None:
        if left:
            return
        over = observer.is_over(frame)
        signal.setitimer(signal.ITIMER_REAL, observer.wait(), OURS)
        if over:
            raise OutOfTime(observer.said)

    before = signal.signal(signal.SIGALRM, tick)
    theirs, every = signal.setitimer(signal.ITIMER_REAL, observer.wait(), OURS)
    started = monotonic()
    if theirs:  # another timer of this process is kept in time, and goes on with what is left of it
        observer.latest = started + theirs
        signal.setitimer(signal.ITIMER_REAL, observer.wait(), OURS)
    try:
        yield
    finally:
        left = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if theirs:
            signal.setitimer(signal.ITIMER_REAL, max(theirs - (monotonic() - started), 1e-3), every)


@contextmanager
def _by_exception(observer: _ActivityWatcher) -> Iterator[None]:
    thread, left, planting = threading.get_ident(), threading.Event(), threading.Lock()

    def watch() -> None:
        while not left.wait(observer.wait()):
            with planting:
                if observer.is_over(_frame_of(thread)) and not left.is_set():
                    _plant_in(thread, observer)

    def leave() -> None:
        with planting:
            left.set()
        for _ in range(10):  # the last exception may be under way: it arrives with one of these lines
            pass

    watcher = threading.Thread(target=watch, name="specverify time limit", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        try:
            leave()
        except OutOfTime:
            leave()
        watcher.join()


def _frame_of(thread: int) -> FrameType | None:
    return sys._current_frames().get(thread)  # noqa: SLF001 - there is no other way to see another thread


def _plant_in(thread: int, observer: _ActivityWatcher) -> None:
    """Raise ``OutOfTime`` in the thread with this id, at its next line of Python, unless ``observer`` postpones it.

    The thread may have moved while its state was described, so its frame is examined again, until it has not moved
    in between. The pending exception is never withdrawn: in CPython 3.11, withdrawing it causes an endless loop once a
    profiler is set.
    """
    exception, target = ctypes.py_object(OutOfTime), ctypes.c_ulong(thread)
    for _ in range(_PATIENCE):
        frame = _frame_of(thread)
        line = frame.f_lasti if frame else 0
        if observer.is_postponed(frame):
            return
        if _frame_of(thread) is frame and (frame is None or frame.f_lasti == line):
            break
    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, exception)


def _is_in_ours(frame: FrameType | None) -> bool:
    """Return whether ``frame`` executes specverify's own code, called directly or through a library.

    False if the innermost frame that belongs to specverify or to foreign code is foreign.
    """
    for result, _ in walk_stack(frame) if frame else ():
        if is_ours(file_of(result)) or is_foreign(file_of(result)):
            return is_ours(file_of(result))
    return False


def _is_ignoring(frame: FrameType | None) -> bool:
    """Return whether Python would ignore an exception raised at ``frame``: in ``__del__`` or a callback of ``gc``."""
    callbacks = [getattr(getattr(callback, "__func__", callback), "__code__", None) for callback in gc.callbacks]
    stack = walk_stack(frame) if frame else ()
    return any(result.f_code.co_name == "__del__" or result.f_code in callbacks for result, _ in stack)


def _is_entering_or_leaving(frame: FrameType | None) -> bool:
    """Return whether specverify or a library called by it is entering or leaving a context manager at ``frame``.

    An exception raised there could leave a patch installed.
    """
    for result, _ in walk_stack(frame) if frame else ():
        if is_foreign(file_of(result)):
            return False
        if result.f_code.co_name in {"__enter__", "__exit__"}:
            return True
    return False


def _is_answering(frame: FrameType | None) -> bool:
    """Return whether ``frame`` is inside an intercepted call for random numbers that the subject made."""
    for result, _ in walk_stack(frame) if frame else ():
        if is_foreign(file_of(result)):
            return False
        if Path(file_of(result)).is_relative_to(_INTERCEPT):
            return True
    return False


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether an installed package or a module of the standard library is being imported at ``frame``."""
    for result, _ in walk_stack(frame) if frame else ():
        name, within = file_of(result), result.f_back
        imported = within is not None and within.f_code.co_filename == "<frozen importlib._bootstrap>"
        if imported and (standard_library(name) or is_installed(name)):
            return True
        if is_ours(name):
            return False
    return False
