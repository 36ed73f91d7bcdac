"""Run code of other projects so that any attempt to end the process, or to change its state, is reported.

``sys.exit`` and similar calls raise exceptions, which are caught. ``os._exit`` and other calls that end a process
directly are refused while foreign code runs, with an exception that ``except Exception`` does not catch. A segmentation
fault cannot be caught and ends the process: ``worker`` runs such code in a process of its own.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from traceback import walk_stack
from types import FrameType, ModuleType
from typing import Any, Generic, NamedTuple, TypeVar

from specverify.base.process import NOTHING, Changes, changes_since, process_state
from specverify.foreign.limit import LoopsWithoutDrawing, OutOfTime, time_limit
from specverify.foreign.places import is_ours, place_of_frame, sentence_of
from specverify.intercept.cpython.patches import replaced

Result = TypeVar("Result")
_CAME_BACK = 113
"""Exit status of a forked child that returned from foreign code to specverify."""
_exit = os._exit  # what is called by this name below is refused


class Guarded(NamedTuple, Generic[Result]):
    """The outcome of guarded work: its result, or why it has none (time limit reached, endless loop, process ended).

    ``changes`` are the changes that the work made to the state of the process.
    """

    result: Result | None
    changes: Changes = NOTHING
    out_of_time: str = ""
    """What the work was doing when its time limit was reached; "" if it was not reached."""
    looping: bool = False
    """Whether the work was stopped before its time limit because it loops without drawing.

    ``out_of_time`` names the loop.
    """
    ended: str = ""
    """How the work ended the process or tried to; "" if it did not."""


class _RefusedCall(BaseException):
    """Raised instead of a call that would end the process; the message names the call."""


def guarded(work: Callable[[], Result], seconds: float, *, watch_loops: bool = False) -> Guarded[Result]:
    """Return the outcome of ``work`` within ``seconds``.

    Ordinary exceptions of the work propagate, and so does an interrupt by the user. A ``KeyboardInterrupt`` that the
    subject itself raises counts as an attempt to end the process. With ``watch_loops``, a loop that has too many
    iterations without a draw is stopped (``foreign.loops``).
    """
    refused, changes = list[str](), NOTHING
    with _endings_refused(refused), _copies_ended(refused), _interrupts_told() as interrupted:
        try:
            with time_limit(seconds, watch_loops=watch_loops):
                before = process_state()
                try:
                    result = work()
                finally:
                    changes = changes_since(before)
        except OutOfTime as reason:
            if interrupted:
                raise KeyboardInterrupt from None
            looping = isinstance(reason, LoopsWithoutDrawing)
            return Guarded(None, changes, out_of_time=str(reason), looping=looping)
        except Exception:
            if refused:
                return Guarded(None, changes, ended=refused[0])
            raise
        except BaseException as error:
            if interrupted and isinstance(error, KeyboardInterrupt):
                raise
            return Guarded(None, changes, ended=refused[0] if refused else f"ends the process: {sentence_of(error)}")
    return Guarded(result, changes, ended=refused[0] if refused else "")


@contextmanager
def _endings_refused(refused: list[str]) -> Iterator[None]:
    """In the ``with`` block, a call that would end this process raises an exception instead.

    For each such call a sentence is appended to ``refused``.
    """
    here = os.getpid()

    def refusing(name: str, library: Callable[..., Any], ends: Callable[..., bool]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if os.getpid() != here or not ends(*args, **kwargs):
                return library(*args, **kwargs)  # what another process does is its own affair
            place = place_of_frame(sys._getframe(1))  # noqa: SLF001 - whoever called
            refused.append(f"calls {name}({', '.join(map(repr, args))}) ({place})")
            raise _RefusedCall(refused[-1])

        return call

    with ExitStack() as stack:
        for module, calls in _ENDINGS.items():
            library = {name: getattr(module, name) for name in calls if hasattr(module, name)}
            values = {name: refusing(f"{module.__name__}.{name}", call, calls[name]) for name, call in library.items()}
            stack.enter_context(replaced(module, values))
        yield


@contextmanager
def _copies_ended(refused: list[str]) -> Iterator[None]:
    """In the ``with`` block, end every child process of ``os.fork`` that returns to a frame of specverify.

    Without this, two processes would continue the verification after the subject has called ``os.fork``. For each such
    child a sentence is appended to ``refused``.
    """
    copies: list[tuple[int, str]] = []
    library: Callable[[], int] | None = getattr(os, "fork", None)
    if library is None:
        yield
        return

    def fork() -> int:
        refuse_what_came_back()
        if refused:
            raise _RefusedCall(refused[-1])
        copy = library()
        if copy:
            copies.append((copy, place_of_frame(sys._getframe(1))))  # noqa: SLF001 - whoever called
        else:
            _end_at_return(sys._getframe(1))  # noqa: SLF001
        return copy

    def refuse_what_came_back() -> None:
        for copy, place in copies:
            with suppress(OSError):
                ended = os.waitid(os.P_PID, copy, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended and ended.si_status == _CAME_BACK:
                    os.waitpid(copy, 0)
                    refused.append(f"calls os.fork() ({place}), and both processes come back from the call")

    with replaced(os, {"fork": fork}):
        try:
            yield
        finally:
            refuse_what_came_back()


def _end_at_return(frame: FrameType) -> None:
    """Make this process end as soon as it returns to a frame of specverify among the callers of ``frame``."""
    ours = [value for value, _ in walk_stack(frame) if is_ours(value.f_code.co_filename)]

    def watch(returning: FrameType, event: str, _: Any) -> None:
        if event == "return" and any(returning.f_back is value for value in ours):
            _exit(_CAME_BACK)

    sys.setprofile(watch)


@contextmanager
def _interrupts_told() -> Iterator[list[int]]:
    """In the ``with`` block, record each signal SIGINT, and then handle it as before (raise ``KeyboardInterrupt``).

    Yields the list to which the signal numbers are appended. So an interrupt by the user can be told from a
    ``KeyboardInterrupt`` that the subject raises itself. Outside the main thread nothing is recorded.
    """
    told: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield told
        return

    def tell(number: int, frame: FrameType | None) -> None:
        told.append(number)
        handler(number, frame)

    signal.signal(signal.SIGINT, tell)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, handler)


def _always(*_: Any, **__: Any) -> bool:
    return True


def _is_fatal(number: int) -> bool:
    """Return whether the signal ``number`` would end or stop this process, given its current handlers.

    SIGINT always counts as such.
    """
    if number in {0, *(getattr(signal, name, 0) for name in ("SIGCHLD", "SIGCONT", "SIGURG", "SIGWINCH"))}:
        return False
    return number == signal.SIGINT or signal.getsignal(number) is signal.SIG_DFL


_ENDINGS: dict[ModuleType, dict[str, Callable[..., bool]]] = {
    os: {
        "_exit": _always,
        "abort": _always,
        "execv": _always,
        "execve": _always,
        "kill": lambda pid, number: pid in {0, os.getpid()} and _is_fatal(number),
        "killpg": lambda group, number: group in {0, os.getpgrp()} and _is_fatal(number),
    },
    signal: {"raise_signal": _is_fatal},
}
"""Calls that can end this process. ``_ENDINGS[module][name]`` gets the arguments of a call of the function ``name`` of
``module``, and returns whether this call ends the process."""
