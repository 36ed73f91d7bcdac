"""States of generators: two draws from one state are one draw.

``Streams`` remembers the states that were drawn from in one run. Where a second draw is made from a state of the first
in the same way, it is the same number or outcome, so that laws are right when a stream is started over. Made in another
way (other weights, another function), it would hang together with the first by the arithmetic of the library, which is
not modelled: ``NeedsValue`` refuses it as soon as both are looked at.

The state of a NumPy or ``random`` stream is its seed and how many numbers were drawn since; a stream without a seed, or
seeded by an object, has its states for itself. ``torch_streams`` reads the real state of torch's generators.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from reference import Draws, Pmf, Site
from specverify.intercept.audit import Draw, Origin
from specverify.intercept.deferred import Categorical, Uniform

_ONE_DOUBLE = {"rand", "random", "random_sample", "uniform"}
"""Functions that give the next double of the stream as it is."""


class Streams:
    """The states that were drawn from in one run."""

    def __init__(self) -> None:
        """Nothing has been drawn."""
        self._origins: dict[Hashable, Origin] = {}

    def draw(self, site: Site, state: Hashable | None, way: Hashable) -> Draw:
        """Return the draw made at ``site`` from ``state``; None is a state that nothing else has."""
        return Draw(site, None if state is None else self._origins.setdefault(state, Origin()), way)


class SeededStream:
    """A generator of NumPy or ``random``, known by its seed. It answers as ``draws``, one number after the other."""

    def __init__(self, streams: Streams, draws: Draws, kind: str, seed: Any) -> None:
        """Streams of one ``kind`` and seed are the same stream."""
        self._streams, self._draws, self._drawn = streams, draws, 0
        whole = isinstance(seed, int | np.integer | list | tuple)
        self._seed = (kind, repr(seed)) if whole else None

    def _next(self) -> Hashable | None:
        self._drawn += 1
        return None if self._seed is None else (*self._seed, self._drawn)

    def uniform(self, site: Site, function: str) -> Uniform:
        """Return the next uniform number of the stream, asked for by ``function``."""
        way = ("uniform", "double" if function in _ONE_DOUBLE else function)
        return Uniform(self._draws, site, self._streams.draw(site, self._next(), way))

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the next outcome of the stream."""
        way = (str(site[0]).rpartition(".")[2].partition(" ")[0], np.asarray(pmf).tobytes())
        outcome: int = Categorical(self._draws, pmf, site, draw=self._streams.draw(site, self._next(), way)).value()
        return outcome
