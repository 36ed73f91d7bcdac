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

from specverify.intercept.block import Block
from specverify.intercept.native_types import replaced

_STARTS = tuple(name for name in ("_start_new_thread", "_start_joinable_thread") if hasattr(threading, name))
_INSIDE = threading.local()


@contextmanager
def threads_enter(block: Block, enter: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Let threads that are started inside the block run within ``enter()``."""

    def inside(function: Callable[..., Any]) -> Callable[..., Any]:
        context = copy_context()

        def run(*args: Any, **kwargs: Any) -> Any:
            if block.over or getattr(_INSIDE, "block", None) is block:
                return function(*args, **kwargs)
            before, _INSIDE.block = getattr(_INSIDE, "block", None), block
            try:
                with enter():
                    return context.copy().run(function, *args, **kwargs)
            finally:
                _INSIDE.block = before

        return run

    def starting(start: Callable[..., Any]) -> Callable[..., Any]:
        return lambda function, *args, **kwargs: start(inside(function), *args, **kwargs)

    def excepthook(args: Any, hook: Any = threading.excepthook) -> None:
        if type(args.exc_value).__module__.partition(".")[0] != __name__.partition(".")[0]:
            hook(args)
        elif not any(args.exc_value is refusal for refusal in block.refusals):
            block.refusals.append(args.exc_value)

    starts = {name: starting(getattr(threading, name)) for name in _STARTS}
    pools = sys.modules.get("concurrent.futures.thread")
    with (
        replaced(threading, starts | {"excepthook": excepthook}),
        replaced(_thread, {"start_new_thread": starting(_thread.start_new_thread)}),
        replaced(pools.ThreadPoolExecutor, {"submit": _submitting(pools, inside)}) if pools else nullcontext(),
    ):
        yield


def _submitting(pools: Any, inside: Callable[..., Any]) -> Callable[..., Any]:
    submit = pools.ThreadPoolExecutor.submit
    return lambda self, function, /, *args, **kwargs: submit(self, inside(function), *args, **kwargs)
