"""Somebody's cache as a list that speculation appends to and crops: what is done to it, and what it should hold then.

A cache is driven next to a plain list by the same operations. An *operation* is ``("append", tokens)``,
``("crop", length)``, which keeps the first ``length``, or ``("fork", tokens)``: a copy is made, ``tokens`` are appended
to the copy, and nothing is to be seen of them in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from reference import Tokens, keep_lengths
from reference.arguments import shown
from specverify.subjects.subject import UnusableSubject

Operation = tuple[str, Any]


class CacheUnderTest(NamedTuple):
    """How a cache is made, changed and read."""

    make: Callable[[], Any]
    append: Callable[[Any, Tokens], Any]
    crop: Callable[[Any, int], Any]
    read: Callable[[Any], Sequence[int]]
    length: Callable[[Any], int] | None = None
    """What it says of its own length."""
    fork: Callable[[Any], Any] | None = None
    """Makes an independent copy."""
    capacity: int = 64


class Difference(NamedTuple):
    """Where a cache is first not what it should be."""

    operations: tuple[Operation, ...]
    said: str


def first_difference(cache: CacheUnderTest, operations: Sequence[Operation]) -> Difference | None:
    """Do the operations to a new cache and to a list; return after which of them they differ, if they do."""
    made, expected = cache.make(), Tokens()
    for number, (name, given) in enumerate(operations, start=1):
        done = tuple(operations[:number])
        try:
            made, expected = _after(cache, made, expected, name, given)
            held = _held(cache, made)
            told = None if cache.length is None else int(cache.length(made))
        except UnusableSubject:
            raise
        except Exception as error:
            if number == 1:
                raise UnusableSubject(f"its first operation, {name} {given}, raised {_said(error)}") from error
            return Difference(done, f"it raised {_said(error)}")
        if held != expected:
            return Difference(done, f"it holds {held}, expected {expected}")
        if told not in (None, len(expected)):
            return Difference(done, f"it says that it holds {told}, expected {len(expected)}")
    return None


def _after(cache: CacheUnderTest, made: Any, expected: Tokens, name: str, given: Any) -> tuple[Any, Tokens]:
    """Return the cache and the list after one operation; an operation may change the cache or return another."""
    if name == "append":
        return _or_itself(cache.append(made, given), made), expected + given
    if name == "crop":
        return _or_itself(cache.crop(made, given), made), expected[:given]
    assert cache.fork is not None
    cache.append(cache.fork(made), given)
    return made, expected


def _or_itself(answer: Any, made: Any) -> Any:
    """Return what an operation returned if it is a cache of the same kind, else the cache that it changed."""
    return answer if isinstance(answer, type(made)) else made


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _held(cache: CacheUnderTest, made: Any) -> Tokens:
    found = cache.read(made)
    listed = found.tolist() if hasattr(found, "tolist") else list(found)
    try:
        return tuple(int(token) for token in listed)
    except (TypeError, ValueError):
        raise UnusableSubject(f"read returned {shown(found)}, expected the token ids that the cache holds") from None


def told_of(operations: Sequence[Operation]) -> tuple[str, ...]:
    """Return the operations as lines."""
    return tuple(f"{name} {given}" for name, given in operations)


def smaller(cache: CacheUnderTest, found: Difference) -> Difference:
    """Return a difference that fewer operations show: each is left out that is not needed."""
    place = 0
    while place < len(found.operations):
        fewer = found.operations[:place] + found.operations[place + 1 :]
        again = first_difference(cache, fewer) if _possible(fewer) else None
        if again is None:
            place += 1
        else:
            found, place = again, 0
    return found


def _possible(operations: Sequence[Operation]) -> bool:
    """Return whether no crop is to more than is held."""
    held = 0
    for name, given in operations:
        if name == "crop" and given > held:
            return False
        held = given if name == "crop" else held + len(given) * (name == "append")
    return True


def short_sequences(longest: int, names: Sequence[str]) -> Iterator[tuple[Operation, ...]]:
    """Yield every sequence of up to ``longest`` operations, short ones first: appends, and crops of the last."""

    def beginning(done: tuple[Operation, ...], held: int, token: int, more: int) -> Iterator[tuple[Operation, ...]]:
        if not more:
            yield done
            return
        for name, given in _next(held, token):
            if name in names:
                size = given if name == "crop" else held + len(given) * (name == "append")
                yield from beginning((*done, (name, given)), size, token + 2, more - 1)

    for number in range(1, longest + 1):
        yield from beginning((), 0, 0, number)


def _next(held: int, token: int) -> list[Operation]:
    tokens = (token, token + 1)
    crops: list[Operation] = [("crop", held - cut) for cut in range(min(held, 3) + 1) if held]
    return [("append", tokens[:1]), ("append", tokens), *crops, ("fork", tokens[:1])]


def speculative_rounds(seed: int, capacity: int, largest: int = 9) -> tuple[Operation, ...]:
    """Return rounds of speculation on a target's cache, until it is full.

    Each feeds the last committed token and the drafts, and keeps what ``reference.keep_lengths`` says.
    """
    rng = np.random.default_rng(seed)
    committed, fresh = int(rng.integers(1, 8)), 100
    operations: list[Operation] = [("append", tuple(range(committed - 1)))] if committed > 1 else []
    while committed + largest < capacity:
        gamma = int(rng.integers(0, largest))
        accepted = (0, gamma, int(rng.integers(0, gamma + 1)))[rng.integers(3)]
        operations.append(("append", tuple(range(fresh, fresh + 1 + gamma))))
        operations.append(("crop", keep_lengths(committed, gamma, accepted).target))
        committed, fresh = committed + accepted + 1, fresh + 1 + gamma
    return tuple(operations)


def rejecting_rounds(drafts: int, capacity: int) -> tuple[Operation, ...]:
    """Return rounds that feed so many drafts and reject them all, one token being kept, until the cache is full."""
    operations: list[Operation] = []
    for held in range(capacity - drafts):
        operations.append(("append", tuple((held * 7 + place) % 1000 for place in range(drafts + 1))))
        operations.append(("crop", held + 1))
    return tuple(operations)
