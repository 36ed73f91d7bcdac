"""Randomness that is not intercepted: refuse it, vary it in a replay, or report and locate it in an observed run.

A block is a ``with`` block in which random calls are intercepted. Child processes, sockets and device files are refused
in a block, with file and line. Clocks and the random bytes of the operating system are allowed as long as no token
depends on them (the name of a request, a measured time). ``elsewhen`` changes the time and these bytes, also to extreme
ones, so that a replay differs if a token depends on them.

``moved`` replays a program under changed conditions. Every reachable generator gets another state (equal states stay
equal), the clocks show another time and the operating system returns other bytes. A program whose draws are all
intercepted behaves as before.

``probed`` observes one run and lists every call into C that may return a random number without interception.
``sys.setprofile`` reports each call of a C function with its bound object, under whatever name it was called; torch
reports its own operations at the dispatcher (``torch.generators``). Calls that certainly draw are listed separately
from those that may draw: clocks, random bytes of the operating system, native code of other packages.

``named`` locates a draw that is not intercepted: the run is traced line by line until the state of a generator has
changed. Without tracing, such a draw, in a TorchScript function, an existing thread or a hidden method, is noticed only
at the next intercepted draw or at the end of the run.
"""

from __future__ import annotations

import _random
import datetime as dt
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import count
from pathlib import Path
from types import BuiltinMethodType, ModuleType
from typing import Any, NamedTuple

from specverify.intercept.caller import caller, file_of, is_ours_or_answered, jax_is_answered, standard_library
from specverify.intercept.cpython import aliases, generator_states
from specverify.intercept.cpython.addresses import addresses_moved
from specverify.intercept.cpython.aliases import Alias, Everything, exchanged, places_of
from specverify.intercept.cpython.frozen import frozen_seen
from specverify.intercept.refusals import NeedsValue, current, tried
from specverify.intercept.run import PROCESS, is_aside
from specverify.reference import Draws

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
"""Functions that read the clock unless they get a time."""
DATES = (time.strftime, time.asctime)
"""Functions that read the clock unless they get a date."""
ENTROPY = tuple(getattr(os, name) for name in ("urandom", "getrandom") if hasattr(os, name))
_KEPT = {"specverify", "rich", "joblib", "threading", "queue", "selectors", "concurrent", "asyncio", "multiprocessing",
         "logging", "_pytest", "xdist", "execnet", "hypothesis"}  # fmt: skip
"""Packages that keep the real clock, because they wait or display durations."""


def _seen(event: str, details: Any) -> None:
    """Audit hook of Python: refuse an event that can bring random numbers from outside, such as by a socket.

    ``event`` is the name of the event, ``details`` are its arguments. Nothing is refused outside interception.
    """
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
    """Install the audit hook that refuses sockets, child processes and device files; it acts only during interception.

    Python cannot remove an audit hook.
    """
    sys.addaudithook(_seen)


@contextmanager
def elsewhen(number: int) -> Iterator[None]:
    """Context manager: the clocks show another time and the operating system returns other random bytes.

    ``number`` selects both. The bytes are all 0 for ``number`` 0, all 1 bits for 1, and fresh for larger numbers.
    """
    seconds = 86_400 * (1 + number % 97 + (number * 0.6180339887) % 1)
    inside: dict[Any, Any] = {clock: _later(clock, seconds) for clock in CLOCKS}
    inside |= {clock: _calendar(clock, seconds) for clock in CALENDARS}
    inside |= {clock: _date(clock, seconds) for clock in DATES}
    if number < 2:
        inside |= {source: _filled(255 * number) for source in ENTROPY}
    later = inside[dt.datetime] = _later_datetime(dt.timedelta(seconds=seconds))
    inside |= {getattr(dt.datetime, name): getattr(later, name) for name in ("now", "utcnow", "today")}
    with exchanged([Alias(place, item, inside[item]) for place, item in PROCESS.clocks if item in inside]):
        yield


def find_sources(everything: Everything) -> None:
    """Search ``everything`` for references to clocks and sources of random bytes; store them in ``PROCESS.clocks``."""
    PROCESS.clocks.clear()
    of_datetime = [item for item in everything.of(BuiltinMethodType) if item.__self__ is dt.datetime]
    items = [*CLOCKS, *CALENDARS, *DATES, *ENTROPY, dt.datetime, *of_datetime]
    PROCESS.clocks[:] = places_of(items, everything, of_datetime, CLOCKS, CALENDARS, DATES, ENTROPY, but=_KEPT)


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

    A long result has a counter in the middle, because names of files are made of such bytes and must differ.
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

    The results are stored in ``PROCESS``, where blocks and replays find them. The search takes tenths of a second if
    many modules are loaded.
    """
    watch_outside()
    PROCESS.generators.clear()  # so that those that nobody else holds any more are not found again
    aliases.forget()
    with frozen_seen():
        everything = aliases.Everything()
        find_sources(everything)
        aliases.find_aliases(everything)
    result = [item for item in everything.of(*aliases.GENERATORS) if not isinstance(item, random.SystemRandom)]
    of_bits = {id(generator_states.bits_of(item)): item for item in result}  # several may share them
    PROCESS.generators[:] = map(generator_states.Held, of_bits.values())


@contextmanager
def moved(number: int) -> Iterator[None]:
    """Context manager: generators have other states, clocks other times, and the operating system returns other bytes.

    New objects also have addresses in another order. ``number`` selects these states, times, bytes and the order. At
    the end everything is restored.
    """
    with generators_moved(number), elsewhen(number), addresses_moved(number):
        yield


@contextmanager
def generators_moved(number: int) -> Iterator[None]:
    """Context manager: every generator that ``look_around`` found has another state.

    The state is computed from the generator's own state and ``number``. At the end the states are restored.
    """
    before = [(held, state) for held in PROCESS.generators if (state := held.read())]
    for held, state in before:
        held.write(generator_states.state_in_world(held.generator, held.seed_after(state, number)))
    try:
        yield
    finally:
        for held, state in before:
            held.write(state)


# Probe


_DRAWS = {"random", "getrandbits", "randbytes"}
_SOURCES = {**dict.fromkeys((*CLOCKS, *CALENDARS, *DATES), "clock"), **dict.fromkeys(ENTROPY, "random bytes")}
_OTHER_LIBRARIES = {("cupy", "_generator.py"), ("tensorflow", "random_ops.py"),
                    ("tensorflow", "stateless_random_ops.py"), ("paddle", "random.py")}  # fmt: skip
"""Libraries with random numbers that are not intercepted: (package, file of its random functions)."""
_OTHER_MODULES = ("mlx.core.random", "cupy.random", "cupy_backends.cuda.libs.curand", "torch._C._cuda_")


class Found(NamedTuple):
    """The calls of an observed run that may draw without interception, each with file and line.

    ``unanswered`` are calls that draw, ``sources`` reads of clocks and system bytes, and ``native`` calls of unknown
    native code, which may draw.
    """

    unanswered: tuple[str, ...] = ()
    """Draws that no front end intercepted."""
    sources: tuple[str, ...] = ()
    """Clocks and random bytes that were read; they count as draws only if a token depends on them."""
    native: tuple[str, ...] = ()
    """Native code of packages that specverify does not know."""


@contextmanager
def probed() -> Iterator[Callable[[], Found]]:
    """Context manager that records the calls that may draw without interception, in all threads started in the block.

    Yields a function without arguments, which returns the calls recorded so far.
    """
    seen: dict[str, dict[str, None]] = {"unanswered": {}, "sources": {}, "native": {}}
    known: dict[Hashable, _CallInC | None] = {}

    def note(kind: str, call: str) -> None:
        seen[kind][f"{call} at {caller()}"] = None

    def profile(frame: Any, event: str, arg: Any) -> None:
        if is_aside():
            return
        if event == "c_call":
            _look(frame, arg, note, known)
        elif event == "call" and _is_other_library(frame.f_code.co_filename):
            note("unanswered", f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")

    def recorded_calls() -> Found:
        drawn = [f"{operation} at {place}" for operation, place in operations or ()]
        unanswered = dict.fromkeys([*seen["unanswered"], *drawn])
        return Found(tuple(unanswered), tuple(seen["sources"]), tuple(seen["native"]))

    before = sys.getprofile(), threading.getprofile()
    with _operations() as operations:
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            yield recorded_calls
        finally:
            _restore(*before)


def _restore(profiler: Any, of_threads: Any) -> None:
    """Set the profiler of this thread to ``profiler``, and that of new threads to ``of_threads``.

    ``profiler`` is a function, None, or the object of cProfile, which is enabled by its own method.
    """
    sys.setprofile(profiler if callable(profiler) else None)
    if profiler is not None and not callable(profiler):
        profiler.enable()
    threading.setprofile(of_threads)


def _operations() -> Any:
    """Return a context manager in which the operations of torch that draw without interception are recorded.

    It does nothing if torch is not imported.
    """
    if "torch" not in sys.modules:
        return nullcontext()
    return import_module("specverify.intercept.torch.generators").drawing_operations()


class _CallInC(NamedTuple):
    """Data about one C function that may draw random numbers: how ``probed`` records its calls.

    ``kind`` is the field of ``Found`` (a list of calls) to which a call is added, and ``call`` the text that is added.
    """

    kind: str
    call: str
    anywhere: bool = True
    """Whether calls by the standard library count too."""


def _look(frame: Any, function: Any, note: Callable[[str, str], None], known: dict[Hashable, _CallInC | None]) -> None:
    """Report a call of the C function ``function`` by ``note(kind, text)`` if the call may draw a random number.

    ``frame`` is the Python frame that makes the call. ``known`` is a cache, filled here, from a function to how its
    calls are listed (None if it draws nothing).
    """
    filename = frame.f_code.co_filename
    if is_ours_or_answered(filename):
        return
    owner = getattr(function, "__self__", None)
    alike: Hashable = function
    if owner is not None and type(owner) is not ModuleType:
        kind = owner if isinstance(owner, type) else type(owner)
        alike = kind, isinstance(owner, type), function.__name__, getattr(function, "__module__", None)
    if alike not in known:
        known[alike] = _classify_call(function, owner)
    told = known[alike]
    if told is not None and (told.anywhere or not standard_library(filename)):
        note(told.kind, told.call)


def _classify_call(function: Any, owner: Any) -> _CallInC | None:
    name = function.__name__
    source = _SOURCES.get(function) if isinstance(function, type(len)) else None
    if source:
        return _CallInC("sources", f"{name} ({source})")
    if isinstance(owner, _random.Random) and name in _DRAWS:
        return _CallInC("unanswered", f"random.{name}")
    if isinstance(owner, type) and issubclass(owner, dt.datetime) and name in {"now", "utcnow", "today"}:
        return _CallInC("sources", f"datetime.{name} (clock)")
    module = _module_of(function, owner)
    if module.startswith(_OTHER_MODULES):
        return _CallInC("unanswered", f"{module}.{name}", anywhere=False)
    return _CallInC("native", f"{module}.{name}", anywhere=False) if _is_native(module) else None


def _module_of(function: Any, owner: Any) -> str:
    """Return the name of the module of ``function``, a C function.

    For a method of ``owner`` without a module of its own, it is the module of the class that defines the method.
    """
    named = getattr(function, "__module__", None)
    kinds = (kind for kind in type(owner).__mro__ if function.__name__ in vars(kind))
    return str(named or next(kinds, type(owner)).__module__)


def _is_native(module: str) -> bool:
    top = module.partition(".")[0]
    if jax_is_answered() and top in {"jax", "jaxlib"}:
        return False
    known = top in sys.stdlib_module_names or top in {"builtins", "numpy", "torch"}
    file = getattr(sys.modules.get(module), "__file__", None)
    return not known and (file is None or file.endswith(tuple(EXTENSION_SUFFIXES)))


@cache
def _is_other_library(filename: str) -> bool:
    path = Path(filename)
    if "jax" in path.parts and not jax_is_answered() and "random" in {path.stem, path.parent.name}:
        return True
    return any(path.name == file and folder in path.parts for folder, file in _OTHER_LIBRARIES)


# Located


_PLACE = re.compile(r"\w\.\w+:\d+")


def named(refusal: NeedsValue, run: Callable[[Draws], Any], draws: Draws) -> str:
    """Return the text of ``refusal``, with the file and line of the draw that was not intercepted.

    If the text has no line, ``run(draws)`` repeats the refused run, and tracing finds the line. If the repeated run is
    not refused, the text is returned without a line.
    """
    if _PLACE.search(str(refusal)):
        return str(refusal)
    try:
        with _traced():
            run(draws)
    except NeedsValue as found:
        return str(found)
    return str(refusal)


@contextmanager
def _traced() -> Iterator[None]:
    """Context manager: test at every line of foreign code whether the previous line drew without interception.

    If it did, the refusal is raised with that line.
    """
    last = [""]

    def trace(frame: Any, event: str, _: Any) -> Any:
        filename = file_of(frame)
        if is_ours_or_answered(filename) or standard_library(filename):
            return None
        block = current()
        if block is not None and last[0]:
            for look in block.looks:
                _asked(look, last[0])
        last[0] = f"{Path(filename).name}:{frame.f_lineno}"
        return trace

    before = sys.gettrace(), threading.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before[0])
        threading.settrace(before[1])


def _asked(look: Callable[[], None], place: str) -> None:
    try:
        with tried():
            look()
    except NeedsValue as refusal:
        raise refusal.again().at(place) from None
