"""Drafters of a tree of paths that is computed from the text alone, without draws and without state."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..trees import deterministic_draft, merged
from ..types import Draft, Drafter, Draws, Pmf, Tokens
from .model import stateless


def paths_drafter(paths: Callable[[Tokens, int], Iterable[Tokens]]) -> Drafter:
    """Return a drafter of ``paths(prefix, gamma)``, paths of at most gamma tokens, merged where they share a prefix.

    Each token is a point mass.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        return deterministic_draft(merged(paths(prefix, gamma)))

    return Drafter(init=stateless, propose=propose, observe=stateless)
