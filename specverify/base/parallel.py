"""Independent pieces of work, shared among processes and told as they finish or in their order.

The processes are those of this machine, or within ``shared_among`` those of a cluster; the work is the same, and so is
the code that gives it out.
"""

from __future__ import annotations

import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from multiprocessing import TimeoutError as NotInTime
from typing import Any, TypeVar

from specverify.base.process import own_workers

Result = TypeVar("Result")


BACKENDS = ("loky", "dask")
ELSEWHERE = 3600.0
"""Seconds in which something finishes elsewhere: joblib is not told of a worker of a cluster that ended."""
_elsewhere: ContextVar[bool] = ContextVar("_elsewhere", default=False)
"""Whether the processes are not of this machine."""


class WorkerDied(Exception):  # noqa: N818 - reads as the sentence it is
    """A process that shared the work ended before the work."""


def in_parallel(
    works: Sequence[Callable[[], Result]], jobs: int, done: Callable[[int], None] = lambda index: None
) -> Iterator[Result]:
    """Yield the results of ``works`` in order, from ``jobs`` processes, or from this one if it is alone.

    ``done`` is told the index of each as it finishes. Raises ``WorkerDied`` if a process ends before its work.
    """
    waiting: dict[int, Result] = {}
    following = 0
    for index, result in as_finished(works, jobs):
        done(index)
        waiting[index] = result
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def as_finished(
    works: Sequence[Callable[[], Result]], jobs: int, patience: float | None = None
) -> Iterator[tuple[int, Result]]:
    """Yield the index and the result of each of ``works`` as it finishes; they are begun in their order.

    An interrupt reaches this process alone, and ends the others. Raises ``WorkerDied`` if one ends before its work, or
    if for ``patience`` seconds nothing finishes.
    """
    if not _elsewhere.get() and (jobs == 1 or len(works) < 2):
        yield from ((index, work()) for index, work in enumerate(works))
        return
    from joblib import Parallel, delayed  # noqa: PLC0415 - loaded only to share the work

    number = jobs if _elsewhere.get() else min(jobs, len(works))
    if patience is None and _elsewhere.get():
        patience = ELSEWHERE
    parallel = Parallel(n_jobs=number, return_as="generator_unordered", batch_size=1, timeout=patience)
    with own_workers(), _deaths_named(patience):
        with _not_interrupted():
            found = parallel(delayed(partial(_numbered, index, work))() for index, work in enumerate(works))
        try:
            while (following := _quietly(lambda: next(found, None))) is not None:
                yield following
        finally:
            _quietly(found.close)


@contextmanager
def shared_among(backend: str, scheduler: str | None) -> Iterator[int | None]:
    """Let the work of the block be done by a backend of joblib; yield how many pieces it does at a time.

    ``loky`` are processes of this machine, as many as each call asks for: then nothing is yielded. ``dask`` are the
    workers of the cluster whose scheduler is named (the extra scale); what is sent there is pickled, so they must have
    the same versions installed. Raises ``ValueError`` in one sentence if the backend is not to be had.
    """
    if backend == "loky":
        yield None
        return
    from joblib import effective_n_jobs, parallel_config  # noqa: PLC0415 - as above

    try:
        chosen = parallel_config(backend=backend, scheduler_host=scheduler)
    except (ImportError, OSError, ValueError) as error:
        raise ValueError(f"the backend {backend} is not to be had: {error}") from None
    with chosen:
        token = _elsewhere.set(True)
        try:
            yield max(effective_n_jobs(-1), 1)
        finally:
            _elsewhere.reset(token)


def _quietly(action: Callable[[], Any]) -> Any:
    """Do it without joblib's warning about work that was given up."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ tasks", UserWarning)
        return action()


def _numbered(index: int, work: Callable[[], Result]) -> tuple[int, Result]:
    return index, work()


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Let the processes that are started here inherit that an interrupt from the terminal is ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _deaths_named(patience: float | None) -> Iterator[None]:
    try:
        yield
    except NotInTime as error:
        if patience is None:
            raise
        raise WorkerDied(f"for {patience:g} s nothing was finished: a process that shared the work hangs") from error
    except _deaths() as error:
        raise WorkerDied(
            "a process that shared the work ended before it: the code in it exited or crashed, or memory ran out"
        ) from error


def _deaths() -> tuple[type[BaseException], ...]:
    """Return what a backend raises where a process ended that shared the work."""
    found = (BrokenExecutor, CancelledError)
    if "distributed" not in sys.modules:
        return found
    distributed: Any = import_module("distributed")
    return *found, distributed.KilledWorker, import_module("distributed.comm").CommClosedError
