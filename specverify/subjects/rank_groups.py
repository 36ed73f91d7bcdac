"""An engine that runs on several ranks, each of which is a process that creates its own engine for the same scenario.

  def make(scenario):
    token = scenario.group.broadcast(token)      the value of rank 0, on every rank
    rows = scenario.group.all_gather(row)        one value of each rank, in their order

The process that started the ranks answers the calls of a simulated group. It detects, without a clock, a rank that ends
while another waits, and ranks that wait in different calls. Under ``torch.distributed`` the group is one of gloo, and
an engine may use ``torch.distributed`` itself.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from specverify.subjects.subject import UnusableSubject

SECONDS: Final = 60.0
"""Time limit in seconds of a job under ``torch.distributed``; a job that exceeds it gives UNKNOWN."""
Job = Callable[[int, "Group"], Any]
"""``job(rank, group)`` runs the work of one rank and returns its result."""


class Group(Protocol):
    """The process group of an engine's ranks, as seen by one rank."""

    @property
    def rank(self) -> int:
        """The number of this rank, starting at 0."""
        ...

    @property
    def size(self) -> int:
        """The number of ranks in the group."""
        ...

    def broadcast(self, value: Any, source: int = 0) -> Any:
        """Send ``value`` from rank ``source`` to all ranks and return it; every rank of the group must call this."""
        ...

    def all_gather(self, value: Any) -> list[Any]:
        """Return the values of all ranks, in the order of their ranks; ``value`` is that of this rank.

        Every rank of the group must call this.
        """
        ...

    def barrier(self) -> None:
        """Wait until all ranks of the group have called this method."""
        ...


class Alone(NamedTuple):
    """A process group of one rank, for an engine that runs in a single process: rank 0 of a group of ``size`` 1."""

    rank: int = 0
    size: int = 1

    def broadcast(self, value: Any, source: int = 0) -> Any:  # noqa: ARG002 - there is one rank
        """Return ``value``, because there is no other rank; ``source`` can only be rank 0."""
        return value

    def all_gather(self, value: Any) -> list[Any]:
        """Return a list with ``value`` alone."""
        return [value]

    def barrier(self) -> None:
        """Do nothing: there is no other rank."""


ALONE: Final = Alone()


class _Simulated(NamedTuple):
    rank: int
    size: int
    line: Connection

    def broadcast(self, value: Any, source: int = 0) -> Any:
        return self._answered("broadcast", source, value)

    def all_gather(self, value: Any) -> list[Any]:
        result: list[Any] = self._answered("all_gather", 0, value)
        return result

    def barrier(self) -> None:
        self._answered("barrier", 0, None)

    def _answered(self, call: str, source: int, value: Any) -> Any:
        self.line.send((call, source, value))
        return self.line.recv()


class _OfGloo(NamedTuple):
    rank: int
    size: int

    def broadcast(self, value: Any, source: int = 0) -> Any:
        import torch.distributed  # noqa: PLC0415 - an extra, needed here alone

        box = [value]
        torch.distributed.broadcast_object_list(box, src=source)
        return box[0]

    def all_gather(self, value: Any) -> list[Any]:
        import torch.distributed  # noqa: PLC0415 - as above

        result: list[Any] = [None] * self.size
        torch.distributed.all_gather_object(result, value)
        return result

    def barrier(self) -> None:
        import torch.distributed  # noqa: PLC0415 - as above

        torch.distributed.barrier()


class Unlike(NamedTuple):
    """The result of a job on several ranks that cannot end.

    The ranks wait in different calls of the group, or one rank ended while another waits. ``said`` describes this.
    """

    said: str


class Silent(NamedTuple):
    """The result of a job on several ranks if one rank did not return in time; ``said`` names the rank."""

    said: str


@contextmanager
def ranks_of(size: int, job: Callable[[Any], Job], *, gloo: bool) -> Iterator[Callable[[Any], Any]]:
    """Start ``size`` ranks; yield ``run(given)``, which runs one job on all ranks and returns their results in order.

    ``job(given)`` returns the function that every rank calls with its number and its group. With ``gloo`` the ranks
    form a group of ``torch.distributed``, else a simulated one. ``run`` returns ``Unlike`` or ``Silent`` if the ranks
    do not end together; no further job can run then. It raises ``UnusableSubject`` if a rank raises an error or dies.
    """
    if "fork" not in multiprocessing.get_all_start_methods():
        raise UnusableSubject("ranks are processes made by fork, which this system does not have")
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory(prefix="specverify-ranks-") as folder:
        meeting = Path(folder) / "meeting" if gloo else None
        lines, started = [], []
        for rank in range(size):
            line, end = context.Pipe()
            process = context.Process(target=_serve, args=(end, rank, size, job, meeting), daemon=True)
            process.start()
            end.close()
            lines.append(line)
            started.append(process)
        try:
            yield lambda given: _run(lines, given, timed=gloo)
        finally:
            for line in lines:
                line.close()
            for process in started:
                process.terminate()
                process.join()


def _serve(line: Connection, rank: int, size: int, job: Callable[[Any], Job], meeting: Path | None) -> None:
    """Run jobs as rank ``rank`` of ``size`` until the connection ``line`` closes.

    A job is received from ``line``, and its result or its error is sent back. ``job`` converts a received value to a
    function of rank and group. ``meeting`` is the file through which the ranks form a gloo group; None: the group is
    simulated.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)  # the threads of the process that forked are not here
    group: Group = _Simulated(rank, size, line)
    try:
        if meeting is not None:
            from torch import distributed  # noqa: PLC0415 - an extra, needed here alone

            # a call of gloo waits longer than each rank is waited for: its error would say less than ``Silent``
            limit, place = timedelta(seconds=2 * SECONDS * size), f"file://{meeting}"
            distributed.init_process_group("gloo", init_method=place, rank=rank, world_size=size, timeout=limit)
            group = _OfGloo(rank, size)
        while True:
            given = line.recv()
            try:
                result = ("ended", rank, job(given)(rank, group))
            except Exception as error:  # noqa: BLE001 - foreign code raises anything
                result = ("raised", rank, f"{type(error).__name__}: {error}")
            line.send(result)
    except (EOFError, OSError):
        pass
    finally:
        os._exit(0)  # nothing of the process that forked is ended twice


def _run(lines: Sequence[Connection], given: Any, *, timed: bool) -> Any:
    for line in lines:
        line.send(given)
    ended: dict[int, Any] = {}
    while len(ended) < len(lines):
        waiting: dict[int, tuple[str, int, Any]] = {}
        for rank, line in enumerate(lines):
            if rank in ended:
                continue
            if timed and not line.poll(SECONDS):
                return Silent(f"rank {rank} did not answer within {SECONDS:g} s")
            try:
                message = line.recv()
            except (EOFError, OSError):
                raise UnusableSubject(f"the process of rank {rank} ended") from None
            if message[0] == "raised":
                raise UnusableSubject(f"rank {rank} raised {message[2]}")
            if message[0] == "ended":
                ended[rank] = message[2]
            else:
                waiting[rank] = message
        if unlike := _unlike(ended, waiting):
            return unlike
        _answer(lines, waiting)
    return [ended[rank] for rank in range(len(lines))]


def _unlike(ended: dict[int, Any], waiting: dict[int, tuple[str, int, Any]]) -> Unlike | None:
    if ended and waiting:
        rank, (call, _, _) = next(iter(waiting.items()))
        return Unlike(f"rank {next(iter(ended))} has ended its text, and rank {rank} waits in {call}")
    calls = {
        rank: f"{call} of rank {source}" if call == "broadcast" else call for rank, (call, source, _) in waiting.items()
    }
    if len(set(calls.values())) > 1:
        return Unlike("; ".join(f"rank {rank} waits in {call}" for rank, call in calls.items()))
    return None


def _answer(lines: Sequence[Connection], waiting: dict[int, tuple[str, int, Any]]) -> None:
    values = [waiting[rank][2] for rank in sorted(waiting)]
    for rank, (call, source, _) in waiting.items():
        lines[rank].send(values if call == "all_gather" else values[source] if call == "broadcast" else None)
