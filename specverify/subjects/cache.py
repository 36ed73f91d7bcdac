"""A user's KV cache under appends, crops and copies, compared with a plain list under the same operations.

An *operation* is ``("append", tokens)`` or ``("crop", length)``, which keeps the first ``length`` tokens. ``("fork",
())`` makes a copy; ``("append to copy", tokens)`` and ``("crop copy", length)`` change the last copy; ``("adopt", ())``
continues with the copy in place of the cache, as beam search does. The cache and all copies are read after every
operation: a change of one must not show in another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from specverify.reference import Tokens, keep_lengths
from specverify.reference.validation import shown
from specverify.subjects.subject import UnusableSubject

Operation = tuple[str, Any]
Each = TypeVar("Each")
OF_COPY = {"append to copy": "append", "crop copy": "crop"}
"""Operation on the last copy -> the same operation on the cache itself."""


STATE_ROUNDING = 2.0**-12
"""Half of the bits of float32. One token too many or too few changes the leading bits."""
MOST_COPIES = 3
"""The largest number of copies that exist at the same time."""
NO_RELEASE = (
    "It does not if a cache that its copy has replaced is cropped to nothing before it is dropped: if caches must be "
    "freed, pass CacheOperations(release=...)"
)


class CacheUnderTest(NamedTuple):
    """Functions that create, change and read a cache.

    ``make()`` returns an empty cache. ``append(cache, tokens)`` and ``crop(cache, length)`` change it in place or
    return a new one, and ``read(cache)`` returns its tokens. ``capacity`` is the largest number of tokens that it is
    filled with.
    """

    make: Callable[[], Any]
    append: Callable[[Any, Tokens], Any]
    crop: Callable[[Any, int], Any]
    read: Callable[[Any], Sequence[int]]
    length: Callable[[Any], int] | None = None
    """Returns the length that the cache reports; None if it reports none."""
    fork: Callable[[Any], Any] | None = None
    """Returns an independent copy of a cache; None if there are no copies."""
    capacity: int = 64
    window: int = 0
    """The number of last tokens that ``read`` returns; 0 means all."""
    recurrent: bool = False
    """Whether the content is a recurrent state; it is compared with that of a new cache that is fed the same tokens."""
    counts_all: bool = True
    """Whether the length of a windowed cache counts all tokens of the text, not only those in the window."""
    release: Callable[[Any], Any] | None = None
    """Frees a cache that a copy has replaced; None if it is only dropped."""
    gamma: int | None = None
    """The most drafts of a round, all of which may be cropped; None if only the capacity limits them."""


class CacheDifference(NamedTuple):
    """The first difference between a cache and a plain list of tokens after the same ``operations`` on both.

    ``said`` describes the difference.
    """

    operations: tuple[Operation, ...]
    said: str


class _CacheState(NamedTuple):
    """A cache, ``made``, and the list of tokens that its content must equal, ``expected``."""

    made: Any
    expected: Tokens


def first_difference(cache: CacheUnderTest, operations: Sequence[Operation]) -> CacheDifference | None:
    """Apply the operations to a new cache and to a list; return the first difference, None if there is none.

    An error of the cache counts as a difference. ``UnusableSubject`` is raised if the first operation already raises an
    error, and for an error that does not occur if caches that a copy has replaced are emptied.
    """
    all_held = [_CacheState(cache.make(), Tokens())]
    for number, (name, given) in enumerate(operations, start=1):
        done = tuple(operations[:number])
        try:
            all_held = _after(cache, all_held, name, given)
            wrong = next(filter(None, (_wrong(cache, held, place) for place, held in enumerate(all_held))), None)
        except UnusableSubject:
            raise
        except Exception as error:
            if number == 1:
                raise UnusableSubject(f"its first operation, {name} {given}, raised {_said(error)}") from error
            if _lacks_release(cache, done):
                raise UnusableSubject(f"after {number} operations it raised {_said(error)}. {NO_RELEASE}") from error
            return CacheDifference(done, f"it raised {_said(error)}")
        if wrong is not None:
            return CacheDifference(done, wrong)
    return None


def _lacks_release(cache: CacheUnderTest, operations: Sequence[Operation]) -> bool:
    """Return whether the error at the end of ``operations`` does not occur if replaced caches are cropped to nothing.

    A pool with reference counts runs out of pages unless those of a dropped cache are freed.
    """
    if cache.release is not None or cache.recurrent or ("adopt", ()) not in operations:
        return False

    def emptied(made: Any) -> None:
        with suppress(Exception):
            cache.crop(made, 0)

    return first_difference(cache._replace(release=emptied), operations) is None


def _wrong(cache: CacheUnderTest, held: _CacheState, place: int) -> str | None:
    """Describe the difference between a cache and its list, both in ``held``; None if they are equal.

    ``cache`` has the functions that read it. ``place`` is 0 for the cache itself and 1, 2, ... for its copies.
    """
    who = f"copy {place}" if place else "it"
    if cache.recurrent:
        wrong = _wrong_state(cache, held, who)
    else:
        result, seen = _read(cache, held.made), held.expected[-cache.window :] if cache.window else held.expected
        last = f", the last {cache.window} of {len(held.expected)}" if len(seen) < len(held.expected) else ""
        wrong = None if result == seen else f"{who} holds {result}, expected {seen}{last}"
    if wrong is not None or cache.length is None:
        return wrong
    told = cache.length(held.made)
    count = min(len(held.expected), cache.window) if cache.window and not cache.counts_all else len(held.expected)
    return None if told == count else f"{who} reports {told} entries, expected {count}"


def _wrong_state(cache: CacheUnderTest, held: _CacheState, who: str) -> str | None:
    """Describe how a recurrent state differs from that of a new cache that is fed the same tokens one by one.

    ``held`` has the cache and its tokens, and ``cache`` the functions that make and read a cache. ``who`` names the
    cache in the description. Return None if the states are equal up to rounding.
    """
    fresh = cache.make()
    for token in held.expected:
        fresh = _or_itself(cache.append(fresh, (token,)), fresh)
    result, expected = (np.asarray(_array(cache.read(made)), dtype=np.float64) for made in (held.made, fresh))
    if result.shape != expected.shape:
        return f"{who} has a state of shape {result.shape}, expected {expected.shape}"
    off = float(np.abs(result - expected).max(initial=0))
    if off <= STATE_ROUNDING * max(1.0, float(np.abs(expected).max(initial=0))):
        return None
    return f"the state of {who} is off by {off:.2g} from that of a new cache fed the kept tokens {held.expected}"


def _array(value: Any) -> Any:
    return value.detach().cpu().numpy() if hasattr(value, "detach") else value


def _after(cache: CacheUnderTest, all_held: list[_CacheState], name: str, given: Any) -> list[_CacheState]:
    """Return the cache and its copies after one operation, ``name`` with the argument ``given``.

    ``all_held`` are the cache and its copies before the operation; ``cache`` has the functions that apply it. Such a
    function may change a cache in place or return a new one.
    """

    def copied(held: _CacheState) -> _CacheState:
        assert cache.fork is not None
        return _CacheState(cache.fork(held.made), held.expected)

    after = _with_copies(all_held, name, lambda held, change: _changed(cache, held, change, given), copied)
    if name == "adopt" and cache.release is not None:
        cache.release(all_held[0].made)
    return after


def _with_copies(
    each: Sequence[Each], name: str, changed: Callable[[Each, str], Each], copied: Callable[[Each], Each]
) -> list[Each]:
    """Return the states ``each`` (the cache, then its copies) after the operation ``name``.

    The operation changes one of the states, adds a copy, or replaces the cache by a copy. ``changed(state, name)``
    returns a state after the operation ``name``, "append" or "crop"; ``copied(state)`` returns a copy of a state.
    """
    first, *copies = each
    if name == "fork":
        return [*each, copied(first)]
    if name == "adopt":
        return [copies[-1], *copies[:-1]]
    if name in OF_COPY:
        return [*each[:-1], changed(each[-1], OF_COPY[name])]
    return [changed(first, name), *copies]


def _changed(cache: CacheUnderTest, held: _CacheState, name: str, given: Any) -> _CacheState:
    if name == "append":
        return _CacheState(_or_itself(cache.append(held.made, given), held.made), held.expected + given)
    return _CacheState(_or_itself(cache.crop(held.made, given), held.made), held.expected[:given])


def _or_itself(answer: Any, made: Any) -> Any:
    """Return ``answer``, the result of an operation, if it is a cache; else ``made``, which was changed in place."""
    return answer if isinstance(answer, type(made)) else made


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _read(cache: CacheUnderTest, made: Any) -> Tokens:
    result = cache.read(made)
    listed = result.tolist() if hasattr(result, "tolist") else list(result)
    try:
        tokens = tuple(int(token) for token in listed)
    except (TypeError, ValueError, OverflowError):
        tokens = ()
    if tokens != tuple(listed):
        raise UnusableSubject(f"read returned {shown(result)}, expected the token ids that the cache holds")
    return tokens


def told_of(operations: Sequence[Operation]) -> tuple[str, ...]:
    """Return the operations as lines of text for a report, one line for each."""
    return tuple(f"{name} {given}" for name, given in operations)


def smaller(cache: CacheUnderTest, found: CacheDifference) -> CacheDifference:
    """Return a difference with as few operations as possible: those of ``found`` are removed one after the other.

    An operation stays if ``cache`` shows no difference without it, or if the others would crop more than ``found``
    does: a correct cache with a window could not do that.
    """
    place, most = 0, most_cropped(found.operations)
    while place < len(found.operations):
        fewer = found.operations[:place] + found.operations[place + 1 :]
        possible = _possible(fewer) and (not cache.recurrent or undoes_last_append(fewer))
        possible = possible and most_cropped(fewer) <= most
        try:
            again = first_difference(cache, fewer) if possible else None
        except UnusableSubject:  # it does not begin with the first of the operations that are left
            again = None
        if again is None:
            place += 1
        else:
            found, place = again, 0
    return found


def _sizes_after(sizes: Sequence[int], name: str, given: Any) -> list[int] | None:
    """Return the lengths of the cache and its copies after an operation; None if the operation is impossible.

    ``sizes`` are the lengths before it, ``name`` is the operation, and ``given`` its argument.
    """
    if name in ("adopt", *OF_COPY) and len(sizes) == 1:
        return None
    if OF_COPY.get(name, name) == "crop" and given > sizes[-1 if name in OF_COPY else 0]:
        return None
    changed = lambda held, change: held + len(given) if change == "append" else given  # noqa: E731
    return _with_copies(sizes, name, changed, lambda held: held)


def _possible(operations: Sequence[Operation]) -> bool:
    """Return whether the operations can be applied: no crop exceeds the content, no copy is used before it exists."""
    sizes = [0]
    for name, given in operations:
        after = _sizes_after(sizes, name, given)
        if after is None:
            return False
        sizes = after
    return True


def most_cropped(operations: Sequence[Operation]) -> int:
    """Return the largest number of tokens by which a cache or a copy is ever shorter than it was before."""
    states, most = [(0, 0)], 0
    for name, given in operations:

        def changed(state: tuple[int, int], change: str, given: Any = given) -> tuple[int, int]:
            length = state[0] + len(given) if change == "append" else given
            return length, max(length, state[1])

        states = list(_with_copies(states, name, changed, lambda state: state))
        most = max(most, *(longest - length for length, longest in states))
    return most


def short_sequences(longest: int, copied: bool = False) -> Iterator[tuple[Operation, ...]]:
    """Yield every sequence of 1 to ``longest`` operations, the shortest first.

    An append has one or two tokens, and a crop removes at most three. With ``copied``, the operations on copies (fork,
    adopt, append and crop of a copy) are included.
    """

    def beginning(
        done: tuple[Operation, ...], sizes: list[int], token: int, more: int
    ) -> Iterator[tuple[Operation, ...]]:
        if not more:
            yield done
            return
        for name, given in _next(sizes, token, copied):
            after = _sizes_after(sizes, name, given)
            assert after is not None
            yield from beginning((*done, (name, given)), after, token + 2, more - 1)

    for number in range(1, longest + 1):
        yield from beginning((), [0], 0, number)


def _next(sizes: list[int], token: int, copied: bool) -> list[Operation]:
    result = _changes(sizes[0], token, "append", "crop")
    if copied:
        result.append(("fork", ()))
    if len(sizes) > 1:
        result += [*_changes(sizes[-1], token, "append to copy", "crop copy"), ("adopt", ())]
    return result


def _changes(held: int, token: int, append: str, crop: str) -> list[Operation]:
    tokens = (token, token + 1)
    return [
        (append, tokens[:1]),
        (append, tokens),
        *((crop, held - cut) for cut in range(min(held, 3) + 1) if held),
    ]


def undoes_last_append(operations: Sequence[Operation]) -> bool:
    """Return whether each crop in ``operations`` follows an append and removes at most the tokens of that append.

    Only such operations are applied to a recurrent state, which cannot be cropped to before the start of the last
    round.
    """
    size, before = 0, None
    for name, given in operations:
        if name == "append":
            size, before = size + len(given), size
        elif before is None or given < before:
            return False
        else:
            size = given
    return True


def page_sequences(page: int) -> Iterator[tuple[Operation, ...]]:
    """Yield sequences of two appends, a crop and an append, for a cache with pages of ``page`` tokens.

    An append has 1, ``page`` - 1, ``page`` or ``page`` + 1 tokens. A crop removes one of these numbers of tokens, the
    whole second append, everything or nothing.
    """
    sizes = sorted({1, max(page - 1, 1), page, page + 1})
    for first in sizes:
        for second in sizes:
            whole = first + second
            start: tuple[Operation, ...] = (
                ("append", tuple(range(first))),
                ("append", tuple(range(first, whole))),
            )
            for left in sorted({whole, first, *(whole - cut for cut in sizes if cut <= whole), 0}):
                cropped = (*start, ("crop", left))
                for more in sizes:
                    yield (*cropped, ("append", tuple((500 + place) % 1000 for place in range(more))))


def speculative_rounds(seed: int, capacity: int, largest: int = 9) -> tuple[Operation, ...]:
    """Return the operations on a target's cache in speculative rounds, as long as rounds fit into ``capacity`` tokens.

    Each round appends at most ``largest`` tokens: the last committed token and the drafts after it. Then it crops to
    the length from ``reference.keep_lengths``. ``seed`` selects the numbers of drafts and of accepted drafts.
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
    """Return rounds that append ``drafts`` drafts and reject all of them, until the cache holds ``capacity`` tokens.

    Each round appends one token and the drafts, and then crops the drafts. So the cache grows by one token per round.
    """
    operations: list[Operation] = []
    for held in range(capacity - drafts):
        operations.append(("append", tuple((held * 7 + place) % 1000 for place in range(drafts + 1))))
        operations.append(("crop", held + 1))
    return tuple(operations)


def undone_rounds(drafts: int, capacity: int) -> tuple[Operation, ...]:
    """Return rounds that append the drafts alone, crop all of them and append the token in their place.

    So each crop removes a whole append. The cache grows by one token per round, until it holds ``capacity`` tokens.
    """
    operations: list[Operation] = []
    for held in range(capacity - drafts):
        tokens = tuple((held * 11 + place) % 1000 for place in range(drafts + 1))
        operations += [("append", tokens[:-1]), ("crop", held), ("append", tokens[-1:])]
    return tuple(operations)


def copied_rounds(seed: int, capacity: int, largest: int = 9, *, deep: bool = True) -> tuple[Operation, ...]:
    """Return speculative rounds on a cache and on copies of it; a copy may replace the cache.

    Each round appends fewer than ``largest`` tokens to the cache or to its last copy, and then crops the same one. If
    ``deep``, some crops also remove tokens of earlier rounds. ``seed`` selects the rounds, and ``capacity`` is the
    largest length.
    """
    rng = np.random.default_rng(seed)
    sizes, fresh = [0], 100
    operations: list[Operation] = []

    def do(name: str, given: Any) -> None:
        nonlocal sizes
        after = _sizes_after(sizes, name, given)
        assert after is not None
        operations.append((name, given))
        sizes = after

    do("append", tuple(range(int(rng.integers(1, capacity // 2)))))
    while max(sizes) + largest < capacity:
        if len(sizes) <= MOST_COPIES and rng.random() < 0.4:
            do("fork", ())
        copies = len(sizes) > 1
        append, crop = (("append", "crop"), ("append to copy", "crop copy"))[int(copies and rng.random() < 0.5)]
        drafts = int(rng.integers(1, largest))
        do(append, tuple(range(fresh, fresh + drafts)))
        held = sizes[-1 if append in OF_COPY else 0]
        do(crop, int(rng.integers(held)) if rng.random() < 0.2 and deep else held - int(rng.integers(0, drafts)))
        if copies and rng.random() < 0.3:
            do("adopt", ())
        fresh += drafts
    return tuple(operations)
