"""The paged cache of the target model: slots, pages, what a pass writes, and what is kept after verification."""

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
    """Return the number of pages of ``page_size`` entries that ``entries`` cache entries need."""
    return -(-entries // page_size)


def grown(pages: tuple[int, ...], free: tuple[int, ...], needed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the pages of a request after it grows to ``needed`` pages, and the pages that stay free.

    ``pages`` and ``free`` are its pages and the free ones before. Raises ``Aborted`` if there are too few free pages.
    """
    more = max(needed - len(pages), 0)
    if more > len(free):
        raise Aborted("out of pages")
    return pages + free[:more], free[more:]


def trimmed(pages: tuple[int, ...], free: tuple[int, ...], needed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the first ``needed`` pages of a request after a rewind, and the free pages with the others added."""
    return pages[:needed], pages[needed:] + free


def slots(pages: tuple[int, ...], page_size: int, first: int, count: int) -> tuple[int, ...]:
    """Return the memory slots of ``count`` entries of a request, from its entry ``first`` on.

    ``pages`` are the pages of the request, in order; each has ``page_size`` consecutive slots.
    """
    return tuple(pages[index // page_size] * page_size + index % page_size for index in range(first, first + count))


def positions(held: Sequence[int], fed: Sequence[int]) -> tuple[int, ...]:
    """Return the position of the first token that each row of the batch is fed.

    The position is the number of entries in the row's cache (``held``). ``fed``, the numbers of fed tokens, are not
    used here.
    """
    return tuple(held)


def written(memory: CacheMemory, places: Sequence[int], entries: Sequence[Entry]) -> CacheMemory:
    """Return ``memory`` with each of ``entries`` in its slot; ``places`` are the slots."""
    changed = list(memory)
    for place, entry in zip(places, entries, strict=True):
        changed[place] = entry
    return tuple(changed)


def fed_next(tokens: Tokens, held: int) -> Tokens:
    """Return the tokens to feed before the drafts: the committed tokens after the ``held`` tokens in the cache."""
    return tokens[held:]


def fed_last(tokens: Tokens, held: int) -> Tokens:
    """Return the last committed token as the token to feed; the whole prompt if the cache is empty (``held`` is 0).

    The result equals that of ``fed_next`` as long as every rollback is right.
    """
    return tokens[-1:] if held else tokens


def written_count(fed: int, drafts: int) -> int:
    """Return how many of the ``fed`` tokens leave a cache entry: all of them, also the ``drafts`` among them."""
    return fed


def read(memory: CacheMemory, pages: tuple[int, ...], page_size: int, count: int) -> list[Entry]:
    """Return the first ``count`` cache entries of a request from ``memory``, without entries that were never written.

    ``pages`` are the pages of the request, in order; each has ``page_size`` consecutive slots.
    """
    result = [memory[place] for place in slots(pages, page_size, 0, count)]
    return [entry for entry in result if entry is not None]


def kept(known: int, accepted: int, written: int, batch: int) -> int:
    """Return the number of cache entries to keep after verification: ``known`` plus ``accepted``.

    The text had ``known`` tokens before the drafts, of which ``accepted`` were accepted. The number of all entries,
    ``written``, and of requests in the batch, ``batch``, are not used here.
    """
    return known + accepted


def at_end(held: int, block: int) -> int:
    """Return the number of cache entries that a finished text leaves: ``held``, the entries of its own tokens.

    ``block`` also counts the entries of accepted drafts after the end of the text; it is not used here.
    """
    return held


def after_drafting(memory: CacheMemory, places: Sequence[int], drafted: Sequence[Entry]) -> CacheMemory:
    """Return the target's memory after drafting, unchanged, because the draft model has its own cache.

    ``places``, the slots of the request, and ``drafted``, the drafter's entries, are not used here.
    """
    return memory


def visible(entries: Sequence[Entry], window: int, spare: int) -> Sequence[Entry]:
    """Return the entries to which the newest of ``entries`` attends: the last ``window``, or all if ``window`` is 0.

    ``spare``, the number of entries that are held beyond the window, is not used here.
    """
    return entries[-window:] if window else entries


def checkpoint(before: Tokens, states: tuple[Tokens, ...], drafts: int, accepted: int) -> Tokens:
    """Return the recurrent state after the last accepted draft.

    ``states`` has the state after each token of the pass, whose last ``drafts`` tokens are drafts. ``before`` is the
    state before the pass.
    """
    return states[len(states) - 1 - drafts + accepted]


def recorded(states: tuple[Tokens, ...], drafts: int) -> tuple[Tokens, ...]:
    """Return the recurrent states that a pass records so that it can be rewound: all of ``states``.

    ``states`` has the state after each token of the pass. ``drafts`` is not used here.
    """
    return states


def state_slot(drafts: int) -> int:
    """Return the slot in which the current recurrent state is after a round with ``drafts`` drafts: always 0."""
    return 0


def fresh_state(before: Tokens, rejected: int) -> Tokens:
    """Return the initial recurrent state of a request, which is empty.

    ``before``, the last state of the previous request, and ``rejected``, the number of drafts rejected in its last
    round, are not used.
    """
    return ()


def reused(held: int, boundary: int, recurrent: bool) -> int:
    """Return the number of the previous conversation's cache entries that the next prompt reuses.

    This is ``boundary``, the end of the last whole page that both share. If the cache is a ``recurrent`` state, which
    has read ``held`` tokens, the result is 0 unless ``held`` equals ``boundary``.
    """
    return boundary if not recurrent else held if held == boundary else 0
