"""Independent pieces of work, shared among processes and told in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import TypeVar

from specverify.process import own_workers

Result = TypeVar("Result")


class WorkerDied(Exception):  # noqa: N818 - reads as the sentence it is
    """A process that shared the work ended before the work."""


def in_parallel(works: Sequence[Callable[[], Result]], jobs: int) -> Iterator[Result]:
    """Yield the results of ``works`` in order, from ``jobs`` processes, or from this one if it is alone."""
    if jobs == 1:
        yield from (work() for work in works)
        return
    from joblib import Parallel, delayed  # noqa: PLC0415 - loaded only to share the work

    with own_workers(), _deaths_named():
        yield from Parallel(n_jobs=jobs, return_as="generator")(delayed(work)() for work in works)


@contextmanager
def _deaths_named() -> Iterator[None]:
    try:
        yield
    except BrokenExecutor as error:
        raise WorkerDied(
            "a process that shared the work ended before it: the code in it exited or crashed, or memory ran out"
        ) from error
