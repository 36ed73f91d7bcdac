"""States of generators: two draws from one state are one draw.

``Streams`` remembers the states that were drawn from in one run. Where a second draw is made from a state of the first
in the same way, it is the same number or outcome, so that laws are right when a stream is started over. Made in another
way (other weights, another function), it would hang together with the first by the arithmetic of the library, which is
not modelled: ``NeedsValue`` refuses it as soon as both are looked at.

What a state is: ``answers`` reads it off the generators of NumPy and ``random``, ``torch.streams`` off torch's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from reference import Site
from specverify.intercept.audit import Draw, Origin

Noted = list[tuple[Site, Hashable]]
"""Where a draw was made and the state it was made from; None where another run may find its generator there as well."""
_NOTED: list[Noted] = []


@contextmanager
def states_noted() -> Iterator[Noted]:
    """Yield what grows by every draw that is made inside the block."""
    noted: Noted = []
    _NOTED.append(noted)
    try:
        yield noted
    finally:
        _NOTED.remove(noted)


class Streams:
    """The states that were drawn from in one run."""

    def __init__(self) -> None:
        """Nothing has been drawn."""
        self._origins: dict[Hashable, Origin] = {}

    def draw(self, site: Site, state: Hashable | None, way: Hashable) -> Draw:
        """Return the draw made at ``site`` from ``state``; None is a state that nothing else has."""
        for noted in _NOTED:
            noted.append((site, self.told_apart(state)))
        if state is None:
            return Draw(site, None, way)
        origin = self._origins.get(state)
        if origin is None:
            origin = self._origins[state] = Origin(state)
        return Draw(site, origin, way)

    def told_apart(self, state: Hashable | None) -> Hashable | None:
        """Return the state if a generator that the program did not seed in this run stands elsewhere in another one."""
        return state
