"""Several ranks that decode the same requests in step: they must commit the same tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from specverify.reference import Draws, Pmf, Site, Tokens


class Broadcast:
    """The draws of one rank: what the first rank drew at a site is what every other rank gets there."""

    def __init__(self, inner: Draws, drawn: dict[Any, int]) -> None:
        """``drawn`` is common to the ranks of one run."""
        self._inner, self._drawn = inner, drawn
        self._asked: dict[Hashable, int] = {}

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the common outcome at a site, drawn by whoever comes first."""
        occurrence = self._asked[site] = self._asked.get(site, 0) + 1
        if (site, occurrence) not in self._drawn:
            self._drawn[site, occurrence] = self._inner.categorical(pmf, site)
        return self._drawn[site, occurrence]


def rank_draws(draws: Draws, drawn: dict[Any, int], rank: int) -> Draws:
    """Return the draws of a rank: those of the first one, broadcast."""
    return Broadcast(draws, drawn)


def rank_lookup(rank: int) -> Callable[[Tokens, Tokens, int], Tokens] | None:
    """Return what a rank drafts with instead of the engine's lookup: nothing else."""
    return None
