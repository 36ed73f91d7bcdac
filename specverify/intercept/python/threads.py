"""Threads that foreign code starts inside a block: what they draw is answered like everything else.

NumPy's and ``random``'s methods are answered whatever the thread. torch's functions are answered thread by thread, so a
new thread, and a task of a pool whose threads stood before, enters the block first. A refusal in a thread is noted in
the block, which raises it; it is not printed as well.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import copy_context
from typing import Any

from specverify.intercept.block import Block, current
from specverify.intercept.native_types import once, replaced

_STARTS = tuple(name for name in ("_start_new_thread", "_start_joinable_thread") if hasattr(threading, name))
_POOLS = "concurrent.futures.thread"
_INSIDE = threading.local()


@contextmanager
def threads_enter(block: Block, enter: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Let threads that are started inside the block run within ``enter()``."""
    block.enter = enter
    with threads_replaced(), _pools_replaced() if _POOLS in sys.modules else nullcontext():
        yield


def _inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a thread runs that is started in the block that is open, if one is."""
    block = current()
    if block is None:
        return function
    context = copy_context()

    def run(*args: Any, **kwargs: Any) -> Any:
        if block.over or getattr(_INSIDE, "block", None) is block:
            return function(*args, **kwargs)
        before, _INSIDE.block = getattr(_INSIDE, "block", None), block
        try:
            with block.enter():
                return context.copy().run(function, *args, **kwargs)
        finally:
            _INSIDE.block = before

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
    return lambda self, function, /, *args, **kwargs: submit(self, _inside(function), *args, **kwargs)
