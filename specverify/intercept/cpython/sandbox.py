"""Sources of randomness outside the program: refuse them, or change them in a replay.

Child processes, sockets and device files are refused with file and line. Clocks and the random bytes of the operating
system are allowed as long as no token depends on them (the name of a request, a measured time). ``elsewhen`` runs a
block at another time and with other bytes, also extreme ones, so that a replay differs if a token depends on them.

``moved`` replays a program under changed conditions. Every reachable generator gets another state (equal states stay
equal), the clocks show another time and the operating system returns other bytes. A program whose draws are all
intercepted behaves as before.
"""

from __future__ import annotations

import datetime as dt
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any

from specverify.intercept.caller import caller
from specverify.intercept.cpython import aliases, generator_states
from specverify.intercept.cpython.aliases import Alias, Everything, exchanged, places_in
from specverify.intercept.refusals import NeedsValue, current
from specverify.intercept.run import PROCESS

# Outside


_EVENTS = {
    "subprocess.Popen": "a child process is started",
    "os.fork": "a child process is started",
    "os.forkpty": "a child process is started",
    "os.posix_spawn": "a child process is started",
    "os.spawn": "a child process is started",
    "os.system": "a command is run",
    "os.exec": "another program takes its place",
    "socket.connect": "a connection is opened",
    "socket.sendto": "a message is sent",
}
_DEVICES = {"/dev/urandom", "/dev/random", "/dev/hwrng"}
CLOCKS = tuple(
    getattr(time, name + suffix)
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime")
    for suffix in ("", "_ns")
    if hasattr(time, name + suffix)
)
CALENDARS = (time.localtime, time.gmtime, time.ctime)
"""Clocks, unless they are given a time."""
DATES = (time.strftime, time.asctime)
"""Clocks, unless they are given a date."""
ENTROPY = tuple(getattr(os, name) for name in ("urandom", "getrandom") if hasattr(os, name))
_KEPT = {"specverify", "rich", "joblib", "threading", "queue", "selectors", "concurrent", "asyncio", "multiprocessing",
         "logging", "_pytest", "xdist", "execnet", "hypothesis"}  # fmt: skip
"""Packages that go on by the real time: they wait, or show how long something takes."""


def _seen(event: str, details: Any) -> None:
    """Handle an audit event of Python: refuse it if a block is open and the event can bring numbers from outside."""
    if event != "open" and event not in _EVENTS:
        return
    block = current()
    if block is None or block.suspended:
        return
    if event in _EVENTS:
        raise NeedsValue("from-outside", f"{_EVENTS[event]} at {caller()}: what it draws cannot be answered")
    if isinstance(details[0], (str, bytes)):
        path = os.path.normpath(os.fsdecode(details[0]))
        if path in _DEVICES:
            raise NeedsValue("from-outside", f"{path} is read at {caller()}: its bytes cannot be answered")


@cache
def watch_outside() -> None:
    """Install the audit hook; it cannot be removed, and does nothing outside a block."""
    sys.addaudithook(_seen)


@contextmanager
def elsewhen(number: int) -> Iterator[None]:
    """Context manager: the clocks show another time and the operating system returns other random bytes.

    The bytes are all 0 for ``number`` 0, all 1 bits for 1, and fresh for larger numbers.
    """
    seconds = 86_400 * (1 + number % 97 + (number * 0.6180339887) % 1)
    inside: dict[Any, Any] = {clock: _later(clock, seconds) for clock in CLOCKS}
    inside |= {clock: _calendar(clock, seconds) for clock in CALENDARS}
    inside |= {clock: _date(clock, seconds) for clock in DATES}
    if number < 2:
        inside |= {source: _filled(255 * number) for source in ENTROPY}
    inside[dt.datetime] = _later_datetime(dt.timedelta(seconds=seconds))
    with exchanged([Alias(place, item, inside[item]) for place, item in PROCESS.clocks if item in inside]):
        yield


def find_sources(everything: Everything) -> None:
    """Search ``everything`` for references to clocks and sources of random bytes; store them in ``PROCESS.clocks``."""
    PROCESS.clocks.clear()
    items = [*CLOCKS, *CALENDARS, *DATES, *ENTROPY, dt.datetime]
    PROCESS.clocks[:] = [
        (place, place.look())
        for holder in gc.get_referrers(*items)
        if isinstance(holder, dict) and str(holder.get("__name__", "")).partition(".")[0] not in _KEPT
        for place in places_in(holder, set(map(id, items)), everything)
    ]


def _later(clock: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    shift = int(seconds * 1e9) if clock.__name__.endswith("_ns") else seconds
    return lambda *which: clock(*which) + shift


def _calendar(clock: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    now = time.time
    return lambda moment=None: clock(now() + seconds if moment is None else moment)


def _date(clock: Callable[..., Any], seconds: float) -> Callable[..., Any]:
    now, local = time.time, time.localtime

    def shown(*given: Any) -> Any:
        return clock(*given) if given and isinstance(given[-1], (tuple, time.struct_time)) else clock(
            *given, local(now() + seconds))  # fmt: skip

    return shown


def _filled(byte: int) -> Callable[..., bytes]:
    """Return a replacement of ``os.urandom`` whose bytes are all ``byte``.

    A long result, as used in names, has a counter in the middle, so that names differ.
    """
    calls = count()

    def source(size: int, flags: int = 0) -> bytes:
        if size < 16:
            return bytes([byte]) * size
        return bytes([byte]) * 4 + next(calls).to_bytes(8, "big") + bytes([byte]) * (size - 12)

    return source


def _later_datetime(shift: dt.timedelta) -> type:
    real: Any = dt.datetime

    class Same(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

    class Later(real, metaclass=Same):  # type: ignore[misc]  # a class that was looked up
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return real.now(tz) + shift

        @classmethod
        def utcnow(cls) -> Any:
            return real.now(dt.UTC).replace(tzinfo=None) + shift

        @classmethod
        def today(cls) -> Any:
            return real.today() + shift

    return Later


# Moved


def look_around() -> None:
    """Search the process for generators, bound methods of generators, clocks and sources of random bytes.

    The search takes tenths of a second if many modules are loaded.
    """
    watch_outside()
    PROCESS.generators.clear()  # so that those that nobody else holds any more are not found again
    aliases.forget()
    everything = aliases.Everything()
    if PROCESS.modules != len(sys.modules):
        find_sources(everything)
        PROCESS.modules = len(sys.modules)
    aliases.find_aliases(everything)
    result = [item for item in everything.of(*aliases.GENERATORS) if not isinstance(item, random.SystemRandom)]
    of_bits = {id(generator_states.bits_of(item)): item for item in result}  # several may share them
    PROCESS.generators[:] = map(generator_states.Held, of_bits.values())


@contextmanager
def moved(number: int) -> Iterator[None]:
    """Context manager: generators, clocks and random bytes are changed as ``number`` selects, then restored."""
    with generators_moved(number), elsewhen(number):
        yield


@contextmanager
def generators_moved(number: int) -> Iterator[None]:
    """Context manager: every generator has another state, computed from its own state and ``number``."""
    before = [(held, state) for held in PROCESS.generators if (state := held.read())]
    for held, state in before:
        held.write(generator_states.state_in_world(held.generator, held.seed_after(state, number)))
    try:
        yield
    finally:
        for held, state in before:
            held.write(state)
