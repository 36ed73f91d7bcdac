"""Independent pieces of work, shared among processes and told in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from specverify.process import own_workers

Result = TypeVar("Result")


def in_parallel(works: Sequence[Callable[[], Result]], jobs: int) -> Iterator[Result]:
    """Yield the results of ``works`` in order, from ``jobs`` processes, or from this one if it is alone."""
    if jobs == 1:
        yield from (work() for work in works)
        return
    from joblib import Parallel, delayed  # noqa: PLC0415 - loaded only to share the work

    with own_workers():
        yield from Parallel(n_jobs=jobs, return_as="generator")(delayed(work)() for work in works)
