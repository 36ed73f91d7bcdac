"""Drafters of a tree of paths that is computed from the text alone, without draws and without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..trees import deterministic_draft, merged
from ..types import Draft, Drafter, Draws, Pmf, Tokens
from .model import stateless


def paths_drafter(paths: Callable[[Tokens, int], Iterable[Tokens]]) -> Drafter:
    """Return a drafter of the paths ``paths(prefix, gamma)``, of at most gamma tokens each, as a tree.

    Paths that begin with the same tokens share their nodes. Each token is a point mass.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        return deterministic_draft(merged(paths(prefix, gamma)))

    return Drafter(init=stateless, propose=propose, observe=stateless)
