"""States of generators: two draws from one state are one draw.

``Streams`` remembers the states that were drawn from in one run. Where a second draw is made from a state of the first
in the same way, it is the same number or outcome, so that laws are right when a stream is started over. Made in another
way (other weights, another function), it would hang together with the first by the arithmetic of the library, which is
not modelled: ``NeedsValue`` refuses it as soon as both are looked at.

Requests that are served after each other are told apart. Where one begins from a state that a request before it drew
from, its numbers are those of a seed of its own if its caller chooses the seed; if not, ``NeedsValue`` says so: a seed
that is set for all requests may be meant, or be the fault.

What a state is: ``answers`` reads it off the generators of NumPy and ``random``, ``torch.streams`` off torch's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from specverify.intercept.audit import Draw, Origin
from specverify.intercept.refusals import NeedsValue
from specverify.intercept.run import PROCESS, RUNS
from specverify.reference import Site

Noted = list[tuple[Site, Hashable]]
"""Where a draw was made and the state it was made from; None where another run may find its generator there as well."""
BEGINS_AGAIN = (
    "begins from the seed of a request before: if each request is to have its own, let the call take an argument whose "
    "name has seed in it; else seed once"
)


@contextmanager
def states_noted() -> Iterator[Noted]:
    """Yield what grows by every draw that is made inside the block."""
    noted: Noted = []
    RUNS.noted.append(noted)
    try:
        yield noted
    finally:
        RUNS.noted.remove(noted)


def begin_request(*, seeded: bool) -> None:
    """Say that another request is served; ``seeded`` if its caller chooses its seed."""
    PROCESS.requests, PROCESS.seeded = PROCESS.requests + 1, seeded


class Streams:
    """The states that were drawn from in one run."""

    def __init__(self) -> None:
        """Nothing has been drawn."""
        self._origins: dict[Hashable, tuple[int, Origin]] = {}
        """State -> the last request that drew from it, and what it drew."""

    def draw(self, site: Site, state: Hashable | None, way: Hashable) -> Draw:
        """Return the draw made at ``site`` from ``state``; None is a state that nothing else has."""
        for noted in RUNS.noted:
            noted.append((site, self.told_apart(state)))
        if state is None:
            return Draw(site, None, way)
        request, origin = self._origins.get(state) or (PROCESS.requests, Origin(state))
        if request != PROCESS.requests:
            if not PROCESS.seeded:
                raise NeedsValue("seed-of-another-request", f"{site[0]} at {site[1]} {BEGINS_AGAIN}")
            origin = Origin(state)
        self._origins[state] = (PROCESS.requests, origin)
        return Draw(site, origin, way)

    def told_apart(self, state: Hashable | None) -> Hashable | None:
        """Return the state if a generator that the program did not seed in this run stands elsewhere in another one."""
        return state
