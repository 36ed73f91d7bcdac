"""Detect endless loops: loops with too many iterations without a draw.

Counting is slow, so it begins only after a run has used ``QUIET`` seconds of CPU time without a draw. From then on
every iteration of every loop in the active foreign frames is counted, until the run makes a draw. The clock decides
when counting begins; the number of iterations alone decides whether a run is stopped.

The count of a loop starts again at 0 with each new iteration of the loop around it and each new call of its function.
So nested loops, as in a matrix product, are not mistaken for an endless loop.

Not covered: loops inside one call of C, code of the standard library, NumPy and torch, programs of several threads (one
thread may wait for another in a loop), and on Python 3.11 runs outside the main thread or under another tracer, such as
coverage or a debugger. In these cases the time limit ends the run.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable, Sequence
from time import monotonic, process_time  # by name: foreign code is run at other times, and these go on
from traceback import walk_stack
from types import CodeType, FrameType
from typing import Any, NamedTuple, Protocol

from specverify.foreign.draws_made import Run, draws_made, run_of
from specverify.foreign.places import file_and_line, is_foreign
from specverify.intercept.caller import file_of

QUIET = 5.0
"""Seconds of CPU time without a draw after which iterations are counted. Most runs take milliseconds."""
LOOKS = 5
"""Number of samples of a run's activity in ``QUIET`` seconds."""
WHILE_TURNS = 300_000
"""Iterations of one ``while`` loop without a draw after which a run is stopped.

A loop over the tokens of a text or a prompt has thousands, and one over the largest vocabularies in use 262 144. At 150
microseconds an iteration, the time of a few operations on intercepted tensors, they take less than a minute.
"""
FOR_TURNS = 10_000_000
"""Iterations of one ``for`` loop without a draw after which a run is stopped; most such loops end by themselves."""
MONITORED = hasattr(sys, "monitoring")
"""Whether ``sys.monitoring`` exists (Python 3.12 or later): it works in any thread and together with any tracer."""

_MONITORING: Any = getattr(sys, "monitoring", None)
_THREADS_BEFORE = frozenset(sys._current_frames())  # noqa: SLF001 - there is no other way to see other threads
"""Ids of threads that existed before this module was imported, such as those of a notebook or a test runner."""
_EXTENDED_ARG, _FOR_ITER = dis.opmap["EXTENDED_ARG"], dis.opmap["FOR_ITER"]

Turn = Callable[[FrameType, int, int], None]
"""``turn(frame, source, head)`` is called when ``frame`` jumps back from bytecode offset ``source`` to ``head``."""


class _TurnCount(NamedTuple):
    """How many further iterations each active loop of a run may make before the next draw of the run.

    The value is immutable and replaced as a whole, because a signal may arrive in the middle of an iteration.
    """

    run: Run | None
    draws: object
    """The number of draws that the run had made when counting began."""
    left: dict[FrameType, dict[int, int]]
    """``left[frame][offset]`` is the number of further iterations that a loop may make. The loop is in the active frame
    ``frame`` and begins at the bytecode offset ``offset``."""


class LoopWatch:
    """Counts the iterations of loops while a run makes no draw, and stops the run at the limit."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        """Start without counts, and store ``stop``, which is called if a loop has too many iterations.

        ``stop(reason)`` is called in the thread that loops, and must raise an exception.
        """
        self.next = monotonic() + QUIET / LOOKS
        """The time (of ``time.monotonic``) at which ``look`` must be called next."""
        self._stop = stop
        self._count = _TurnCount(None, None, {})
        self._quiet_since = process_time()
        self._counter: _Counter | None = None

    def look(self, frame: FrameType | None, thread: int, *, importing: bool) -> None:
        """Count loop iterations if the run has made no draw for ``QUIET`` seconds of CPU time; else stop counting.

        This method is called again and again while the run lasts. ``frame`` is the active frame of the run, in the
        thread with the id ``thread``. Nothing is counted while a package is ``importing``, because a module may build
        tables.
        """
        self.next = monotonic() + QUIET / LOOKS
        run = run_of(frame)
        draws = draws_made(run)
        if importing or run is not self._count.run or draws != self._count.draws or _others_run(thread):
            self._quiet_since = process_time()
            self.end()
            self._count = _TurnCount(run, draws, {})
        elif process_time() - self._quiet_since >= QUIET:
            frames = [running for running, _ in walk_stack(frame) if is_foreign(file_of(running))]
            left = self._count.left
            self._count = _TurnCount(run, draws, {running: left.get(running, {}) for running in frames})
            self._counter = self._counter or _counter(self._turned)
            if self._counter is not None:
                self._counter.count_in(frames)

    def end(self) -> None:
        """Stop counting the iterations of loops."""
        self._count = _TurnCount(None, None, {})
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.end()

    def _turned(self, frame: FrameType, source: int, head: int) -> None:
        count = self._count
        left = count.left.get(frame)
        if left is None:
            return
        if head not in left or len(left) > 1:
            for inner in [offset for offset in left if head < offset <= source]:
                del left[inner]
        turns = left.get(head)
        left[head] = turns = (_most_turns(frame.f_code, head) if turns is None else turns) - 1
        if turns > 0:
            return
        if draws_made(count.run) != count.draws or _others_run(threading.get_ident()):
            left.clear()
            return
        self.end()
        self._stop(_sentence(frame, source, head))


class _Counter(Protocol):
    """Interface of the two implementations that report the loop iterations of chosen frames."""

    def count_in(self, frames: Sequence[FrameType]) -> None:
        """Begin to report the iterations of loops in these active frames."""

    def end(self) -> None:
        """Stop reporting the iterations of loops."""


def _counter(turned: Turn) -> _Counter | None:
    """Return an object that calls ``turned`` at each iteration of a loop, by the means of this Python version.

    The call is ``turned(frame, source, head)``: the code in ``frame`` jumps back from the bytecode offset ``source`` to
    the offset ``head``. Returns None if other tools, such as a debugger, already use the hooks for this.
    """
    if not MONITORED:
        return None if sys.gettrace() else _Traced(turned)
    free = [tool for tool in range(6) if _MONITORING.get_tool(tool) is None]
    return _Monitored(turned, free[-1]) if free else None


class _Monitored:
    """Counts loop iterations with ``sys.monitoring``, only in the code of the chosen frames; other code stays fast."""

    def __init__(self, turned: Turn, tool: int) -> None:
        self._tool, self._codes = tool, set[CodeType]()
        self._jump = _MONITORING.events.JUMP

        def jumped(_: CodeType, source: int, head: int) -> None:
            if head <= source:
                turned(sys._getframe(1), source, head)  # noqa: SLF001 - the frame that jumps

        _MONITORING.use_tool_id(tool, "specverify loops")
        _MONITORING.register_callback(tool, self._jump, jumped)

    def count_in(self, frames: Sequence[FrameType]) -> None:
        codes = {frame.f_code for frame in frames}
        for code in codes - self._codes:
            _MONITORING.set_local_events(self._tool, code, self._jump)
        self._codes |= codes

    def end(self) -> None:
        for code in self._codes:
            _MONITORING.set_local_events(self._tool, code, 0)
        _MONITORING.register_callback(self._tool, self._jump, None)
        _MONITORING.free_tool_id(self._tool)


class _Traced:
    """Counts loop iterations with ``sys.settrace`` on Python 3.11, only in the chosen frames.

    If the executed line is the previous one or lies before it, the loop has begun a new iteration.
    """

    def __init__(self, turned: Turn) -> None:
        self._turned = turned
        self._last: dict[FrameType, int | None] = {}

    def count_in(self, frames: Sequence[FrameType]) -> None:
        if sys.gettrace() not in {None, self._called}:
            return
        self._last = {frame: self._last.get(frame) for frame in frames}
        sys.settrace(self._called)
        for frame in frames:
            frame.f_trace = self._at_line

    def end(self) -> None:
        if sys.gettrace() == self._called:
            sys.settrace(None)
        for frame in self._last:
            frame.f_trace = None
        self._last = {}

    def _called(self, *_: Any) -> None:
        """Return None as the trace function of a new call, so that the call is not traced."""

    def _at_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            last, now = self._last.get(frame), frame.f_lasti
            self._last[frame] = now
            if last is not None and now <= last:
                self._turned(frame, last, now)
        return self._at_line


def _others_run(thread: int) -> bool:
    """Return whether a thread other than ``thread`` runs foreign code.

    If so, a loop in ``thread`` may only be waiting for the other thread, and is no endless loop.
    """
    stacks = sys._current_frames().items()  # noqa: SLF001
    others = [frame for other, frame in stacks if other != thread and other not in _THREADS_BEFORE]
    return any(is_foreign(file_of(running)) for frame in others for running, _ in walk_stack(frame))


def _most_turns(code: CodeType, head: int) -> int:
    """Return the largest allowed number of iterations of the loop that begins at bytecode offset ``head`` of ``code``.

    The limit depends on whether this is a ``for`` or a ``while`` loop.
    """
    while code.co_code[head] == _EXTENDED_ARG:
        head += 2
    return FOR_TURNS if code.co_code[head] == _FOR_ITER else WHILE_TURNS


def _sentence(frame: FrameType, source: int, head: int) -> str:
    lines = [
        line for begin, end, line in frame.f_code.co_lines() if line and (begin <= head < end or begin <= source < end)
    ]
    place = file_and_line((file_of(frame), min(lines, default=frame.f_lineno)))
    turns = f"{_most_turns(frame.f_code, head):,}".replace(",", " ")
    return (
        f"{place} loops without drawing: {turns} turns of one loop, without leaving it and without a draw that decides "
        "anything. Let the loop end, or raise, where nothing is added to the text; if it ends by itself and is only "
        "long, examine it with fewer tokens or a smaller model"
    )
