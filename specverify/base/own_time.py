"""Clocks that leave out the time in which a thread waits for a processor.

A limit by such a clock is reached after about as much work beside other programs as on an idle machine. Linux reports
the waiting time of each thread in ``/proc``; on another system these clocks are ordinary ones.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from time import monotonic  # by name: foreign code may replace the functions of ``time``

Clock = Callable[[], float]
"""Returns seconds since an arbitrary beginning, without those in which a thread was ready to run and waited for a
processor. Seconds in which the thread sleeps, or waits for something else, count."""
_NANOSECOND = 1e-9


def own_clock() -> AbstractContextManager[Clock]:
    """Return a context manager that yields a clock of the current thread, which leaves out its waiting time.

    The clock is a function that returns seconds. It may be called from any thread.
    """
    return _clock(f"/proc/self/task/{threading.get_native_id()}/schedstat")


def clock_of_process(process: int) -> AbstractContextManager[Clock]:
    """Return a context manager that yields a clock of the main thread of the process with the id ``process``.

    The clock is a function that returns seconds. It leaves out the time in which that thread waits for a processor.
    """
    return _clock(f"/proc/{process}/schedstat")


@contextmanager
def _clock(name: str) -> Iterator[Clock]:
    file, waited = _opened(name), 0.0

    def now() -> float:
        nonlocal waited
        waited = max(waited, _waiting_seconds(file))  # 0 after the end of the thread
        return monotonic() - waited

    try:
        yield now
    finally:
        if file is not None:
            os.close(file)


def _opened(name: str) -> int | None:
    """Return a descriptor of the file ``name``, or None if the system has no such file."""
    with suppress(OSError):
        return os.open(name, os.O_RDONLY)
    return None


def _waiting_seconds(file: int | None) -> float:
    """Return the seconds in which a thread has waited for a processor since the thread began.

    ``file`` is a descriptor of the thread's file ``schedstat`` in ``/proc``. The result is 0 if ``file`` is None or
    cannot be read.
    """
    if file is not None:
        with suppress(OSError, IndexError, ValueError):
            return int(os.pread(file, 64, 0).split()[1]) * _NANOSECOND
    return 0.0
