"""A clock of a process that leaves out the time in which its threads wait for a processor.

A limit by such a clock is reached after about as much work beside other programs as on an idle machine. Linux reports
the running and waiting time of each thread in ``/proc``; on another system this clock is an ordinary one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic  # by name: foreign code may replace the functions of ``time``
from typing import NamedTuple

Clock = Callable[[], float]
"""Returns seconds since it was made, without those in which no thread of the process ran and one of them
waited for a processor. Seconds in which all of them sleep, or wait for something else, count."""
_NANOSECOND = 1e-9
_LATE = 1.0
"""Seconds of waiting at most that are left out of a later interval than their own: the system adds the waiting time of
a thread when the thread runs again."""
_INACCURACY = 0.005
"""Seconds by which the running time of a thread may be out of date: the system updates it at each of its ticks."""
_INTERVAL = 0.05
"""Seconds in which waiting is not left out yet: it is not reported accurately enough."""
_clock_gettime: Callable[[int], float] = getattr(time, "clock_gettime", lambda clock: 0.0)


class _Readings(NamedTuple):
    """What the system reports about a process and the machine, in seconds since arbitrary beginnings."""

    now: float
    threads: dict[str, tuple[float, float]]
    """The running and the waiting time of each living thread, by its id."""
    ran: float
    """The running time of the process, with that of ended threads."""
    idle: float
    """The mean idle time of the machine's processors."""


def own_clock(process: int = 0) -> Clock:
    """Return a clock of the process with the id ``process``, by default of this process.

    The clock is a function that returns the seconds since it was made. It may be called from any thread. All clocks of
    this process advance alike.
    """
    now = _clock_of(process) if process else _OWN
    made = now()
    return lambda: now() - made


def _clock_of(process: int) -> Clock:
    state, told = (_read(process), 0.0, 0.0), 0.0

    def now() -> float:
        nonlocal state, told
        last, own, late = state  # together: a signal's handler may have called this function in between
        passed = monotonic() - last.now
        if passed < _INTERVAL:
            told = max(told, own + passed)
        else:
            times = _read(process)
            passed, ran = times.now - last.now, times.ran - last.ran
            waited = late + _waited_between(last, times)
            left_out = min(waited, max(passed - ran, 0.0))
            state = (times, own + passed - left_out, min(waited - left_out, _LATE))
            told = max(told, state[1])
        return told

    return now


def _waited_between(first: _Readings, second: _Readings) -> float:
    """Return for how many seconds threads of a process waited for a processor between two readings.

    Nothing tells how long threads waited that have ended since. If there were any, they may have waited whenever no
    processor of the machine was idle.
    """
    ran = waited = 0.0
    for thread, (running, waiting) in second.threads.items():
        before = first.threads.get(thread, (0.0, 0.0))
        ran, waited = ran + running - before[0], waited + waiting - before[1]
    passed = second.now - first.now
    if second.ran - first.ran - ran > 0.01 * passed + _INACCURACY:
        waited += max(passed - (second.idle - first.idle), 0.0)
    return max(waited, 0.0)


def _read(process: int) -> _Readings:
    threads = _times_of_threads(f"/proc/{process or 'self'}/task")
    ran = idle = 0.0
    if threads:
        with suppress(OSError):  # the process has ended
            ran = _clock_gettime(_clock_id(process) if process else time.CLOCK_PROCESS_CPUTIME_ID)
        idle = _idle_seconds()
    return _Readings(monotonic(), threads, ran, idle)


def _times_of_threads(folder: str) -> dict[str, tuple[float, float]]:
    """Return the running and the waiting time in seconds of each thread; none if the system does not tell them."""
    times = {}
    with suppress(OSError):
        for thread in Path(folder).iterdir():
            with suppress(OSError, ValueError):  # the thread has ended
                running, waiting, _ = (thread / "schedstat").read_text().split()
                times[thread.name] = (int(running) * _NANOSECOND, int(waiting) * _NANOSECOND)
    return times


def _clock_id(process: int) -> int:
    """Return the number under which Linux keeps the clock of the running time of a process (clock_getcpuclockid)."""
    return ~process << 3 | 2


def _idle_seconds() -> float:
    """Return the mean time in seconds in which the machine's processors were idle, since an arbitrary beginning."""
    with suppress(OSError, IndexError, ValueError):
        idle = int(Path("/proc/stat").read_text().split(maxsplit=5)[4])
        return idle / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
    return 0.0


_OWN = _clock_of(0)
"""The clock of this process, which all of its time limits use: two that read at other times could disagree."""
