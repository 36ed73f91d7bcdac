"""The schedule: which rows are decoded in which step, on one rank and on several, which must commit the same tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from specverify.mutants.serving.request import Parameters
from specverify.reference import Draws, Pmf, Site, Tokens

# Which requests take part in a step and where their rows are in the flat arrays of one pass


def schedule(ready: Sequence[int], step: int, rotates: bool) -> tuple[int, ...]:
    """Return the order in which the requests that are ``ready`` make up the batch: another one every other step."""
    return tuple(reversed(ready)) if rotates and step % 2 else tuple(ready)


def chunk(tokens: Tokens, held: int, size: int, pending: Tokens) -> Tokens:
    """Return the next part of a prompt to be fed: not its last token, and nothing of ``pending`` drafts."""
    return tokens[held : min(held + size, len(tokens) - 1)]


def starts(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return where each row of the batch begins in the flat array of one pass.

    Rows follow one another; ``rectangular`` passes pad each to the longest.
    """
    widths = [max(lengths)] * len(lengths) if rectangular else list(lengths)
    return tuple(sum(widths[:row]) for row in range(len(lengths)))


def padding_slot(row: int) -> int | None:
    """Return where a padding row of the pass is written: nowhere."""
    return None


def parameters_at(batch: Sequence[Parameters], row: int, start: int) -> Parameters:
    """Return the parameters of a row whose tokens begin at ``start`` of the flat array: one set for each request."""
    return batch[row]


def resumed(tokens: Tokens, pending: Tokens) -> Tokens:
    """Return the text of a request that was preempted and comes back: what was committed, not its old drafts."""
    return tokens


def resolved(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history once a round is judged: the ``reserved`` placeholders at its end give way to ``new``."""
    return history[: len(history) - reserved] + new


def fed_when_full(pending: Tokens) -> Tokens:
    """Return what is fed where the drafter has no room: nothing, and no drafts ``pending`` from the last round."""
    return ()


def accepted_count(new: Tokens, accepted: int) -> int:
    """Return how many drafts a round accepted, for the statistics."""
    return min(accepted, len(new))


# Several ranks that decode the same requests in step: they must commit the same tokens


class Broadcast:
    """The draws of one rank: what the first rank drew at a site is what every other rank gets there."""

    def __init__(self, inner: Draws, drawn: dict[Any, int]) -> None:
        """``drawn`` is common to the ranks of one run."""
        self._inner, self._drawn = inner, drawn
        self._asked: dict[Hashable, int] = {}

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the common outcome at a site; the first rank draws it."""
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
