"""Detect and undo changes that a subject makes to the process: directory, signals, streams, workers.

A subject is called many times in one process, often between other tests of its author. Four changes are faults: another
working directory, another signal handler or timer, replaced or closed standard streams, and a number of workers that
grows with every call. All but the workers are undone. A pool of workers is recorded and left running, because the
subject may rely on it. ``os.environ``, ``sys.path`` and the warning filters are not examined: libraries change them
when they are imported, and a correct subject may import late.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet

STREAMS = ("stdin", "stdout", "stderr")
MOST_WORKERS = 64
"""More new threads or child processes than this are reported as a leak per call; fewer count as a pool of workers."""
ENDING = 0.2
"""Time in seconds that threads and child processes have to end after a call."""
_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
_own: set[Any] = set()
"""Threads and child processes that specverify itself started."""
_of_engines: WeakSet[threading.Thread] = WeakSet()
"""Threads that were started while an engine was created."""


class ProcessState(NamedTuple):
    """The process-wide state that ``changes_since`` compares.

    ``directory`` is the working directory (None: it does not exist). ``handlers`` maps signals to handlers, and
    ``timers`` maps names of interval timers to (seconds left, interval).
    """

    directory: str | None
    handlers: Mapping[signal.Signals, Any]
    timers: Mapping[str, tuple[float, float]]
    streams: Mapping[str, tuple[Any, bool]]
    """Name of a standard stream -> (stream object, whether it is closed)."""
    descriptors: Mapping[int, tuple[tuple[int, int], int]]
    """File descriptor 0, 1 or 2 -> ((device, inode), a duplicate of the descriptor)."""
    threads: frozenset[threading.Thread]
    children: frozenset[int]
    """Process ids of the child processes."""


class Changes(NamedTuple):
    """The faults and notes about what a subject did to the process.

    Each is a phrase such as "leaves 2 threads running", to be put after the name of the subject.
    """

    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Changes that a correct subject may make; they are reported without a refutation."""


NOTHING = Changes()


def joined_changes(one: Changes, other: Changes) -> Changes:
    """Return the changes that two blocks of code made, ``one`` and ``other``, without duplicates."""
    return Changes(
        tuple(dict.fromkeys(one.faults + other.faults)),
        tuple(dict.fromkeys(one.notes + other.notes)),
    )


def process_state() -> ProcessState:
    """Return the current state of the process, to be passed to ``changes_since`` exactly once.

    The state holds open descriptors, which ``changes_since`` closes.
    """
    return ProcessState(
        directory=_directory(),
        handlers={number: signal.getsignal(number) for number in signal.Signals},
        timers=_timers(),
        streams={name: (getattr(sys, name), _is_closed(getattr(sys, name))) for name in STREAMS},
        descriptors={fd: (behind, os.dup(fd)) for fd in range(3) if (behind := _behind(fd))},
        threads=_threads(),
        children=_children(),
    )


def changes_since(before: ProcessState) -> Changes:
    """Return the changes of the process since the state ``before``, and restore that state where possible."""
    faults = [*_directory_fault(before), *_signal_faults(before), *_timer_faults(before), *_stream_faults(before)]
    many, few = _left_running(before)
    return Changes(tuple(faults) + many, few)


@contextmanager
def own_workers() -> Iterator[None]:
    """Context manager for work of specverify itself: threads and processes started in its block are not reported.

    Without it, ``changes_since`` attributes these threads and processes to the subject.
    """
    threads, children = _threads(), _children()
    try:
        yield
    finally:
        _own.update(_threads() - threads, _children() - children)


@contextmanager
def threads_of_an_engine() -> Iterator[None]:
    """Context manager for the creation of an engine: threads started in its block are no leak, however many they are.

    An engine may have a pool of workers, and specverify creates as many engines as it examines scenarios.
    """
    threads = _threads()
    try:
        yield
    finally:
        _of_engines.update(_threads() - threads)


def threads_of_engines() -> frozenset[threading.Thread]:
    """Return the running threads that were started while an engine was created."""
    return frozenset(thread for thread in frozenset(_of_engines) if thread.is_alive())


def _directory() -> str | None:
    with suppress(OSError):
        return str(Path.cwd())
    return None


def _directory_fault(before: ProcessState) -> Iterator[str]:
    now = _directory()
    if before.directory is not None and now != before.directory:
        with suppress(OSError):
            os.chdir(before.directory)
        yield f"changes the working directory to {now}"


def _signal_faults(before: ProcessState) -> Iterator[str]:
    for number, handler in before.handlers.items():
        if signal.getsignal(number) is not handler:
            if handler is not None and threading.current_thread() is threading.main_thread():
                signal.signal(number, handler)
            yield f"changes the handler of {number.name}"


def _timers() -> dict[str, tuple[float, float]]:
    return {name: signal.getitimer(getattr(signal, name)) for name in _TIMERS if hasattr(signal, name)}


def _timer_faults(before: ProcessState) -> Iterator[str]:
    """Yield a fault for each interval timer that was started or changed since ``before``, and stop that timer.

    A timer that the subject stopped is no fault: only specverify's own time limit can have run before.
    """
    for name, (left, every) in _timers().items():
        was, interval = before.timers[name]
        if left and (not was or every != interval):
            signal.setitimer(getattr(signal, name), 0)
            yield f"leaves a timer running ({name}, {left:.3g} s to go)"


def _stream_faults(before: ProcessState) -> Iterator[str]:
    for fd, (behind, second) in before.descriptors.items():
        if _behind(fd) != behind:
            with suppress(OSError):
                os.dup2(second, fd)
            yield f"closes or redirects file descriptor {fd}, the standard {STREAMS[fd][3:]}put"
        with suppress(OSError):
            os.close(second)
    for fd, (name, (stream, closed)) in enumerate(before.streams.items()):
        if getattr(sys, name) is not stream:
            setattr(sys, name, stream)
            yield f"replaces sys.{name}"
        if not closed and _is_closed(stream):
            setattr(sys, name, _opened(fd))
            yield f"closes sys.{name}"


def _opened(fd: int) -> Any:
    """Return a new text stream on the file descriptor ``fd`` (0, 1 or 2), or on ``os.devnull`` if ``fd`` is closed."""
    mode = "r" if fd == 0 else "w"
    try:
        return os.fdopen(fd, mode, buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    except OSError:
        return Path(os.devnull).open(mode, encoding="utf-8")


def _is_closed(stream: Any) -> bool:
    return bool(getattr(stream, "closed", False))


def _behind(fd: int) -> tuple[int, int] | None:
    with suppress(OSError):
        result = os.fstat(fd)
        return result.st_dev, result.st_ino
    return None


def _left_running(before: ProcessState) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return faults and notes about threads and processes that were started after ``before`` and still run.

    The threads and processes first get a short time to end. More than ``MOST_WORKERS`` threads or processes are a
    fault, but for the threads of engines (``threads_of_an_engine``); fewer are a note.
    """
    until = time.monotonic() + ENDING
    threads, children = _threads() - before.threads, _children() - before.children
    while (threads or children) and time.monotonic() < until:
        time.sleep(ENDING / 10)
        threads, children = threads & _threads(), children & _children()
    names = sorted(thread.name for thread in threads)[:3] + ["..."] * (len(threads) > 3)
    leaked = len(threads - threads_of_engines())
    result = [
        (leaked, len(threads), f"leaves {len(threads)} thread{'s' * (len(threads) > 1)} running ({', '.join(names)})"),
        (len(children), len(children), f"leaves {len(children)} child process{'es' * (len(children) > 1)} running"),
    ]
    many = tuple(f"{said}, more than a pool of workers" for leak, _, said in result if leak > MOST_WORKERS)
    return many, tuple(said for leak, number, said in result if number and leak <= MOST_WORKERS)


def _threads() -> frozenset[threading.Thread]:
    return frozenset(thread for thread in threading.enumerate() if thread not in _own)


def _children() -> frozenset[int]:
    """Return the process ids of living child processes, except specverify's own.

    The set is empty on systems that do not list child processes.
    """
    result: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            result.update(map(int, task.read_text("ascii").split()))
    return frozenset(child for child in result if child not in _own and _is_alive(child))


def _is_alive(child: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{child}/stat").read_text("utf-8").rpartition(") ")[2][:1] not in {"Z", "X"}
    return False
