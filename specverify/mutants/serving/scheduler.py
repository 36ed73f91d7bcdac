"""The schedule of the serving engine: the rows of each step, on one rank or on several that must agree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from specverify.mutants.serving.request import Parameters
from specverify.reference import Draws, Pmf, Site, Tokens

# Which requests take part in a step and where their rows are in the flat arrays of one pass


def schedule(ready: Sequence[int], step: int, rotates: bool) -> tuple[int, ...]:
    """Return the order of the ``ready`` requests in the batch of step ``step``.

    If ``rotates``, the order is reversed in every second step; otherwise it is always that of ``ready``.
    """
    return tuple(reversed(ready)) if rotates and step % 2 else tuple(ready)


def chunk(tokens: Tokens, held: int, size: int, pending: Tokens) -> Tokens:
    """Return the next chunk of a prompt to feed: at most ``size`` ``tokens`` after the ``held`` ones in the cache.

    The last token of the prompt is not part of a chunk: the first round feeds it. ``pending``, the drafts of the
    request, are not used here.
    """
    return tokens[held : min(held + size, len(tokens) - 1)]


def starts(lengths: Sequence[int], rectangular: bool, prefilling: Sequence[bool]) -> tuple[int, ...]:
    """Return the offset of each row of the batch in the flat array of one pass.

    ``lengths`` has the number of tokens that each row is fed; ``rectangular`` passes pad each to the longest.
    ``prefilling``, which rows feed a part of a prompt, is not used here.
    """
    widths = [max(lengths)] * len(lengths) if rectangular else list(lengths)
    return tuple(sum(widths[:row]) for row in range(len(lengths)))


def padding_slot(row: int) -> int | None:
    """Return the cache slot into which a padding row is written: None, because it must not be written."""
    return None


def parameters_at(batch: Sequence[Parameters], row: int, start: int) -> Parameters:
    """Return the sampling parameters of the request in row ``row`` of a batch.

    ``start``, where the tokens of the row begin in the flat array of a pass, is not used here.
    """
    return batch[row]


def resumed(tokens: Tokens, pending: Tokens) -> Tokens:
    """Return the text with which a preempted request is resumed: the committed ``tokens``.

    ``pending``, the drafts of its last round, are left out.
    """
    return tokens


def resolved(history: Tokens, reserved: int, new: Tokens, drafts: Tokens) -> Tokens:
    """Return the history after a round: ``new`` replaces the ``reserved`` placeholders at its end.

    ``drafts``, the drafts of the round, are not used.
    """
    return history[: len(history) - reserved] + new


def fed_when_full(pending: Tokens) -> Tokens:
    """Return which of the old drafts ``pending`` are fed if there is no room for new drafts.

    The right engine feeds none.
    """
    return ()


def accepted_count(new: Tokens, accepted: int) -> int:
    """Return the number of accepted drafts of a round for the statistics.

    ``new`` are the tokens of the round that are kept. An accepted draft that was cut from the text does not count.
    """
    return min(accepted, len(new))


# Several ranks that decode the same requests in step: they must commit the same tokens


class Broadcast:
    """The draws of one rank (a process): the rank that comes first makes a draw, the others get its outcome.

    A site names a draw: (kind, request, position), such as ("bonus", 0, 3).
    """

    def __init__(self, inner: Draws, drawn: dict[Any, int]) -> None:
        """Initialise with ``inner``, the draws of this rank, and ``drawn``, the outcomes that all ranks share."""
        self._inner, self._drawn = inner, drawn
        self._asked: dict[Hashable, int] = {}

    def categorical(self, pmf: Pmf, site: Site) -> int:
        """Return the common outcome at ``site``: the first rank draws it from ``pmf``, the others get it."""
        occurrence = self._asked[site] = self._asked.get(site, 0) + 1
        if (site, occurrence) not in self._drawn:
            self._drawn[site, occurrence] = self._inner.categorical(pmf, site)
        return self._drawn[site, occurrence]


def rank_draws(draws: Draws, drawn: dict[Any, int], rank: int) -> Draws:
    """Return the draws of rank ``rank``, a process of the engine; all ranks get the outcomes that the first rank draws.

    ``draws`` are the rank's own draws; ``drawn`` holds the outcomes of the first rank.
    """
    return Broadcast(draws, drawn)


def rank_lookup(rank: int) -> Callable[[Tokens, Tokens, int], Tokens] | None:
    """Return the function by which rank ``rank`` looks up drafts in the text; None for the engine's own lookup.

    A rank is a process of a parallel engine. Here every rank has the engine's own lookup.
    """
    return None
