"""Parallel execution of independent work in processes, with results in order or as they finish.

The processes run on this machine, or on a cluster inside ``shared_among``. The work and the scheduling code are the
same.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from multiprocessing import TimeoutError as NotInTime
from typing import Any, NamedTuple, TypeVar

from specverify.base.process import own_workers

Result = TypeVar("Result")

ELSEWHERE = 3600.0
"""Time limit in seconds for a piece of work on a cluster, because joblib does not report a cluster worker that died."""


class WorkerDied(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised if a worker process ends before it has finished its work."""


def in_parallel(
    works: Sequence[Callable[[], Result]], jobs: int, done: Callable[[int], None] = lambda index: None
) -> Iterator[Result]:
    """Yield the results of ``works`` in order, from ``jobs`` processes, or from this process if ``jobs`` is 1.

    ``works`` are functions without arguments. ``done(index)`` is called when one has finished. Raises ``WorkerDied`` if
    a process ends before its work is finished.
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
    """Yield (index, result) for each of ``works`` as it finishes, from ``jobs`` processes.

    ``works`` are functions without arguments, started in their order. Without a cluster, the current process calls them
    itself if ``jobs`` is 1 or if there is only one function.

    Raises ``WorkerDied`` if a worker process ends before its work is finished, or if no function finishes for
    ``patience`` seconds. None means no limit, but on a cluster the limit ``ELSEWHERE``.
    """
    cluster = _cluster.get()
    if cluster is None and (jobs == 1 or len(works) < 2):
        yield from ((index, work()) for index, work in enumerate(works))
        return
    from joblib import Parallel, delayed  # noqa: PLC0415 - loaded only to share the work

    number = min(jobs, len(works)) if cluster is None else jobs
    if patience is None and cluster is not None:
        patience = ELSEWHERE
    pieces = [delayed(partial(_numbered, index, work))() for index, work in enumerate(works)]
    if cluster is not None and not cluster.one_by_one:
        with own_workers(), _deaths_named(patience), Parallel(number, batch_size=1, timeout=patience) as parallel:
            for first in range(0, len(pieces), number):
                yield from parallel(pieces[first : first + number])
        return
    parallel = Parallel(n_jobs=number, return_as="generator_unordered", batch_size=1, timeout=patience)
    with own_workers(), _deaths_named(patience):
        with not_interrupted():
            value = parallel(pieces)
        try:
            while (following := _quietly(lambda: next(value, None))) is not None:
                yield following
        finally:
            _quietly(value.close)


@contextmanager
def shared_among(backend: str, scheduler: str | None) -> Iterator[int | None]:
    """Context manager: parallel work inside its block runs on a backend of joblib.

    Args:
        backend: ``loky`` for processes of this machine; ``dask`` or ``ray`` for a cluster (both need an extra). All
            machines need the same versions.
        scheduler: Address of the Dask scheduler or of the Ray head; ``local`` starts a cluster for the block.

    Yields:
        The number of works that the cluster runs at the same time; None for ``loky``.

    Raises:
        ValueError: If the backend is not available.
    """
    if backend == "loky":
        yield None
        return
    from joblib import effective_n_jobs, parallel_config  # noqa: PLC0415 - as above

    cluster = _CLUSTERS[backend]
    with ExitStack() as stack:
        try:
            import_module(cluster.module)
            options = stack.enter_context(cluster.joined(scheduler))
            stack.enter_context(parallel_config(backend=backend, **options))
        except ImportError as error:
            raise ValueError(
                f"the backend {backend} is not to be had without the extra {cluster.extra} ({error})"
            ) from None
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"the backend {backend} is not to be had: {error}") from None
        token = _cluster.set(cluster)
        stack.callback(_cluster.reset, token)
        yield max(effective_n_jobs(-1), 1)


@contextmanager
def _of_dask(scheduler: str | None) -> Iterator[Mapping[str, Any]]:
    yield {"scheduler_host": scheduler}


@contextmanager
def _of_ray(head: str | None) -> Iterator[Mapping[str, Any]]:
    """Context manager that connects to the Ray cluster at address ``head`` and registers its joblib backend.

    The block gets {}, the options for joblib. At the end the manager disconnects, unless the process was connected
    before. Raises ``OSError`` or ``ValueError`` for a wrong address.
    """
    ray: Any = import_module("ray")
    mine, ended_by = not ray.is_initialized(), signal.getsignal(signal.SIGTERM)
    if mine:
        _refuse_unreachable(head)
        ray.init(address=head, logging_level="ERROR", log_to_driver=False)
    try:
        import_module("ray.util.joblib").register_ray()
        yield {}
    finally:
        if mine:
            ray.shutdown()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ended_by)  # Ray leaves a handler of its own


def _refuse_unreachable(head: str | None) -> None:
    """Raise ``OSError`` if no process listens at the address ``head``, ``ValueError`` if it is not HOST:PORT.

    Ray itself would retry for minutes. Nothing is tested for None, ``local`` and ``auto``.
    """
    if head in {None, "local", "auto"}:
        return
    host, _, port = str(head).removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"the scheduler is {head!r}, expected HOST:PORT or local")
    socket.create_connection((host, int(port)), 10.0).close()


class _Cluster(NamedTuple):
    """A joblib backend whose processes run on other machines, such as dask or ray; used if a run names it."""

    module: str
    """Name of the module that must be importable."""
    extra: str
    """Name of the package extra that installs it."""
    joined: Callable[[str | None], AbstractContextManager[Mapping[str, Any]]]
    """Context manager that joins the cluster at an address (None: the default) and yields joblib's options."""
    one_by_one: bool
    """Whether results arrive piece by piece; otherwise in batches of the number of workers."""


_CLUSTERS = {"dask": _Cluster("distributed", "scale", _of_dask, True), "ray": _Cluster("ray", "ray", _of_ray, False)}
BACKENDS = ("loky", *_CLUSTERS)
_cluster: ContextVar[_Cluster | None] = ContextVar("_cluster", default=None)
"""The cluster that executes the work; None: this machine."""


def _quietly(action: Callable[[], Any]) -> Any:
    """Call ``action`` and return its result; joblib's warning about unfinished tasks is suppressed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ tasks", UserWarning)
        return action()


def _numbered(index: int, work: Callable[[], Result]) -> tuple[int, Result]:
    return index, work()


@contextmanager
def not_interrupted() -> Iterator[None]:
    """Context manager in whose block new worker processes inherit an ignored SIGINT, so Ctrl-C does not reach them."""
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
    """Return the exception types with which a backend reports that a worker process has ended."""
    value: tuple[type[BaseException], ...] = (BrokenExecutor, CancelledError)
    if "distributed" in sys.modules:
        distributed: Any = import_module("distributed")
        value = (*value, distributed.KilledWorker, import_module("distributed.comm").CommClosedError)
    return (*value, import_module("ray.exceptions").RayError) if "ray" in sys.modules else value
