"""Checks of a KV cache: it holds exactly the tokens appended and not cropped, and is separate from its copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, of_names
from specverify.subjects.cache import (
    CacheUnderTest,
    Operation,
    copied_rounds,
    first_difference,
    most_cropped,
    page_sequences,
    rejecting_rounds,
    short_sequences,
    smaller,
    speculative_rounds,
    told_of,
    undoes_last_append,
    undone_rounds,
)

LONGEST = 4
"""The largest number of operations in the sequences that are tried in every order."""
ROUNDS = 12
"""The number of texts that are decoded until the cache is full."""
COPIES_NOT_EXAMINED: Final = (
    "its copies are not examined: if its method fork makes one, pass CacheOperations(fork=lambda cache: cache.fork())"
)
Sequences = Callable[[], Iterable[tuple[Operation, ...]]]


MOST_IN_ROUNDS = 8
"""The most drafts in rounds whose numbers of drafts and of accepted drafts differ."""
REJECTED = (1, 2, 4, 7, 8, 9, 16, 33)
"""The numbers of drafts in rounds that reject all drafts; each is tried at every cache length."""

USUAL_GAMMA = 16
"""Few engines draft more tokens in a round; a crop of more is a fault only if the cache promises to undo as many."""
OF_GAMMA = "; {} tokens are undone at once: if a round never has as many drafts, state their largest number by gamma="


def checks_of_cache(cache: CacheUnderTest, page: int = 0) -> tuple[Check, ...]:
    """Return the checks of ``cache``: of its contents after appends and crops, and of the separation of its copies.

    ``page`` is the number of entries in a page. If it is not 0, lengths at the edges of pages are checked too.
    """
    full = tuple(("append", (token,)) for token in range(cache.capacity))
    at_once: tuple[Operation, ...] = (("append", tuple(range(cache.capacity))),)
    gamma = cache.capacity - 1 if cache.gamma is None else cache.gamma
    largest = min(gamma, MOST_IN_ROUNDS) + 1
    checks = [
        _check(
            cache,
            "appends_are_kept",
            "what is appended is held, in its order",
            lambda: (full, at_once),
            examine=_examine_appends,
        ),
        _check(
            cache,
            "crops_keep_the_first",
            "after a crop the first tokens are held, and what is appended follows them",
            lambda: (
                operations
                for operations in short_sequences(LONGEST)
                if most_cropped(operations) <= gamma and (not cache.recurrent or undoes_last_append(operations))
            ),
        ),
        _check(
            cache,
            "rounds_leave_what_is_committed",
            "after each round of speculation the committed tokens are held, up to the capacity",
            lambda: [
                *(speculative_rounds(seed, cache.capacity, largest) for seed in range(ROUNDS)),
                *(
                    rounds(drafts, cache.capacity)
                    for rounds in (rejecting_rounds, undone_rounds)
                    for drafts in REJECTED
                    if drafts <= gamma
                ),
            ],
        ),
    ]
    if page:
        said = "what is appended and cropped at the edges of pages is held"
        checks.append(_check(cache, "pages_hold_their_tokens", said, partial(page_sequences, page)))
    if cache.fork is not None:
        said = "nothing done to a copy is seen in the cache, and nothing done to the cache in a copy"
        checks.append(_check(cache, "forks_are_apart", said, partial(_with_copies, cache, gamma, largest)))
    return tuple(checks)


def _with_copies(cache: CacheUnderTest, gamma: int, largest: int) -> Iterable[tuple[Operation, ...]]:
    yield from (each for each in short_sequences(LONGEST, copied=True) if most_cropped(each) <= gamma)
    deep = cache.gamma is None
    yield from (copied_rounds(seed, cache.capacity, largest, deep=deep) for seed in range(ROUNDS))


def _examine(cache: CacheUnderTest, sequences: Sequences, summary: str, conditions: Conditions) -> Examination:
    number = operations = 0
    for sequence in sequences():
        number, operations = number + 1, operations + len(sequence)
        result = first_difference(cache, sequence)
        if result is not None and cache.window and cache.counts_all:  # its length may be that of what it holds
            of_held = cache._replace(counts_all=False)
            other = first_difference(of_held, sequence)
            if other is None or len(other.operations) > len(result.operations):
                cache, result = of_held, other
        if result is not None:
            least = smaller(cache, result)
            undone = most_cropped(least.operations)
            said = least.said + (OF_GAMMA.format(undone) if cache.gamma is None and undone > USUAL_GAMMA else "")
            return Examination(
                f"after {len(least.operations)} operations {said}",
                failed=True,
                counterexample=Counterexample(("a new cache", *told_of(least.operations)), said),
            )
    return Examination(f"{summary}: {number} sequences, {operations} operations")


def _examine_appends(cache: CacheUnderTest, sequences: Sequences, summary: str, conditions: Conditions) -> Examination:
    """Examine the appends, and note that copies are not examined although the cache can make some."""
    result = _examine(cache, sequences, summary, conditions)
    noted = not result.failed and cache.fork is None and callable(getattr(cache.make(), "fork", None))
    return result._replace(figures={"notes": [COPIES_NOT_EXAMINED]}) if noted else result


def _check(
    cache: CacheUnderTest,
    name: str,
    summary: str,
    sequences: Sequences,
    examine: Callable[..., Examination] = _examine,
) -> Check:
    examined = of_names({name: partial(examine, cache, sequences, summary)})
    return Check(name, summary, None, Evidence.EQUAL, (examined,))
