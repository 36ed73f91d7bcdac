"""The paged cache of the target: slots, pages, what a pass writes, and what is kept after the drafts are judged."""

from __future__ import annotations

from collections.abc import Sequence

from specverify.mutants.serving.model import Entry
from specverify.mutants.serving.request import Aborted
from specverify.reference import Tokens

CacheMemory = tuple[Entry | None, ...]


def fragmented(pages: int) -> tuple[int, ...]:
    """Return the free pages of a new pool, in an order in which no page is followed by its neighbour."""
    return (*range(0, pages, 2), *range(1, pages, 2))


def pages_for(entries: int, page_size: int) -> int:
    """Return how many pages hold this many entries."""
    return -(-entries // page_size)


def grown(pages: tuple[int, ...], free: tuple[int, ...], needed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pages of a request that needs ``needed`` of them, and the free ones. Raises ``Aborted`` if none is."""
    more = max(needed - len(pages), 0)
    if more > len(free):
        raise Aborted("out of pages")
    return pages + free[:more], free[more:]


def trimmed(pages: tuple[int, ...], free: tuple[int, ...], needed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pages that are still needed after a rewind, and the free ones."""
    return pages[:needed], pages[needed:] + free


def slots(pages: tuple[int, ...], page_size: int, first: int, count: int) -> tuple[int, ...]:
    """Return the places in memory of ``count`` entries from the ``first`` on: page by page, wherever the pages are."""
    return tuple(pages[index // page_size] * page_size + index % page_size for index in range(first, first + count))


def positions(held: Sequence[int], fed: Sequence[int]) -> tuple[int, ...]:
    """Return the position at which each row's pass begins, of caches that hold ``held`` and are fed ``fed`` tokens."""
    return tuple(held)


def written(memory: CacheMemory, places: Sequence[int], entries: Sequence[Entry]) -> CacheMemory:
    """Return the memory with ``entries`` at ``places``."""
    changed = list(memory)
    for place, entry in zip(places, entries, strict=True):
        changed[place] = entry
    return tuple(changed)


def fed_next(tokens: Tokens, held: int) -> Tokens:
    """Return what is fed before the drafts: every committed token that the cache does not hold."""
    return tokens[held:]


def fed_last(tokens: Tokens, held: int) -> Tokens:
    """Return the last committed token, once the prompt was fed: the same, as long as every rollback is right."""
    return tokens[-1:] if held else tokens


def written_count(fed: int, drafts: int) -> int:
    """Return how many of the fed tokens leave an entry: every one."""
    return fed


def read(memory: CacheMemory, pages: tuple[int, ...], page_size: int, count: int) -> list[Entry]:
    """Return the first ``count`` entries of a request; those never written are left out."""
    result = [memory[place] for place in slots(pages, page_size, 0, count)]
    return [entry for entry in result if entry is not None]


def kept(known: int, accepted: int, written: int, batch: int) -> int:
    """Return how many entries stay after ``accepted`` drafts behind ``known`` tokens, of ``written`` in all."""
    return known + accepted


def at_end(held: int, block: int) -> int:
    """Return how many entries a finished text leaves, ``block`` being those of the accepted block before its cut."""
    return held


def after_drafting(memory: CacheMemory, places: Sequence[int], drafted: Sequence[Entry]) -> CacheMemory:
    """Return the target's memory after the draft model ran: it has a cache of its own, so nothing changed."""
    return memory


def visible(entries: Sequence[Entry], window: int, spare: int) -> Sequence[Entry]:
    """Return what the newest of ``entries`` attends to: the last ``window`` ones, all if 0.

    ``spare`` entries older than the window are held while drafts wait for their judgement, and must not be seen.
    """
    return entries[-window:] if window else entries


def checkpoint(before: Tokens, states: tuple[Tokens, ...], drafts: int, accepted: int) -> Tokens:
    """Return the recurrent state to go on from: the one after the last accepted draft.

    ``states`` are those after each token of the pass, the last ``drafts`` of which were drafts; ``before`` is the state
    before it.
    """
    return states[len(states) - 1 - drafts + accepted]


def recorded(states: tuple[Tokens, ...], drafts: int) -> tuple[Tokens, ...]:
    """Return the states that a pass records for a rewind: all of them."""
    return states


def state_slot(drafts: int) -> int:
    """Return where the live state is after a round of ``drafts``: always in the first slot."""
    return 0


def fresh_state(before: Tokens, rejected: int) -> Tokens:
    """Return the state a request begins with where another ended that had ``rejected`` drafts in its last round."""
    return ()


def reused(held: int, boundary: int, recurrent: bool) -> int:
    """Return how many entries of the conversation so far go on being used: whole pages, up to ``boundary``.

    A recurrent state stands for ``held`` tokens and no fewer.
    """
    return boundary if not recurrent else held if held == boundary else 0
