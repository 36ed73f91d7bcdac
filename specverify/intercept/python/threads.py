"""Threads that foreign code starts inside a block: what they draw is answered like everything else.

NumPy's and ``random``'s methods are answered whatever the thread. torch's functions are answered thread by thread, so a
new thread, and a task of a pool whose threads stood before, enters the block first. A refusal in a thread is noted in
the block, which raises it; it is not printed as well. Nor is any error of a thread whose path was abandoned: its block
is over, or ends by a refusal.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from typing import Any

from specverify.intercept.native_types import once, replaced
from specverify.intercept.refusals import NeedsValue, current
from specverify.intercept.run import RUNS, Block

_STARTS = tuple(name for name in ("_start_new_thread", "_start_joinable_thread") if hasattr(threading, name))
_POOLS = "concurrent.futures.thread"


@contextmanager
def threads_enter(block: Block, enter: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Let threads that are started inside the block run within ``enter()``."""
    block.enter = enter
    with threads_replaced(), _pools_replaced() if _POOLS in sys.modules else nullcontext():
        yield


def _is_abandoned(block: Block) -> bool:
    """Return whether the path that a block followed is given up."""
    return block.over or bool(block.refusals)


def _unless_abandoned(block: Block, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return what tells of the error of a thread, unless its path was abandoned; a refusal is noted all the same."""

    def invoke(thread: threading.Thread) -> None:
        if not _is_abandoned(block) or (not block.over and isinstance(sys.exc_info()[1], NeedsValue)):
            hook(thread)

    return invoke


def _inside(function: Callable[..., Any], *, pooled: bool = False) -> Callable[..., Any]:
    """Return what a thread runs that is started in the block that is open, if one is."""
    block = current()
    if block is None:
        return function
    context = copy_context()
    thread = getattr(function, "__self__", None)
    if isinstance(thread, threading.Thread) and hasattr(thread, "_invoke_excepthook"):
        thread._invoke_excepthook = _unless_abandoned(block, thread._invoke_excepthook)  # noqa: SLF001

    def run(*args: Any, **kwargs: Any) -> Any:
        if block.over or getattr(RUNS.thread, "block", None) is block:
            return function(*args, **kwargs)
        before, RUNS.thread.block = getattr(RUNS.thread, "block", None), block
        try:
            with block.enter():
                return context.copy().run(function, *args, **kwargs)
        except Exception:
            if not pooled and _is_abandoned(block):  # nobody waits for it, and it would be printed
                return None
            raise
        finally:
            RUNS.thread.block = before

    return run


def _starting(start: Callable[..., Any]) -> Callable[..., Any]:
    return lambda function, *args, **kwargs: start(_inside(function), *args, **kwargs)


@once
@contextmanager
def threads_replaced() -> Iterator[None]:
    """Let whoever starts a thread inside ask which block is open, and none of its refusals be printed."""

    def excepthook(args: Any, hook: Any = threading.excepthook) -> None:
        block = current()
        if block is None or type(args.exc_value).__module__.partition(".")[0] != __name__.partition(".")[0]:
            hook(args)
        elif not any(args.exc_value is refusal for refusal in block.refusals):
            block.refusals.append(args.exc_value)

    starts = {name: _starting(getattr(threading, name)) for name in _STARTS}
    with (
        replaced(threading, starts | {"excepthook": excepthook}),
        replaced(_thread, {"start_new_thread": _starting(_thread.start_new_thread)}),
        _pools_replaced() if _POOLS in sys.modules else nullcontext(),
    ):
        yield


@once
@contextmanager
def _pools_replaced() -> Iterator[None]:
    """Do the same to tasks of a pool, whose threads may have stood before. It may be loaded after others were."""
    pool = sys.modules[_POOLS].ThreadPoolExecutor
    with replaced(pool, {"submit": _submitting(pool.submit)}):
        yield


def _submitting(submit: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, function, /, *args, **kwargs: submit(self, _inside(function, pooled=True), *args, **kwargs)
