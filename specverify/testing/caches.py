"""Checks of caches: the user's cache must store the entries of tokens, and remove those of rejected drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

from specverify.base.arguments import argument_error, check_callable, check_flag, check_integer
from specverify.base.verdict import Verdict
from specverify.checks import Conditions
from specverify.checks.cache_checks import checks_of_cache
from specverify.reference import Tokens
from specverify.subjects.cache import CacheUnderTest
from specverify.subjects.subject import Subject
from specverify.testing.judged import judge, judged
from specverify.testing.plans import CheckOptions, checks_plan, name_of


class CacheOperations(NamedTuple):
    """Functions that operate a cache, for a cache whose methods are not named ``append``, ``crop`` and so on.

    A function may change the cache in place, or return another cache of the same type.

    Examples:
        >>> CacheOperations(append=lambda cache, tokens: cache.extend(tokens)).fork is None
        True
    """

    append: Callable[[Any, Tokens], Any] | None = None
    """``append(cache, tokens)`` adds the entries of a tuple of token ids, each below 1000. None: the method."""
    crop: Callable[[Any, int], Any] | None = None
    """``crop(cache, length)`` keeps the first ``length`` entries. None: the method."""
    read: Callable[[Any], Any] | None = None
    """``read(cache)`` returns the ids of the entries in the cache, in order, ``[held]``; None means ``list(cache)``."""
    length: Callable[[Any], int] | None = None
    """``length(cache)`` returns the number of entries that the cache reports. None: the length is not examined."""
    fork: Callable[[Any], Any] | None = None
    """``fork(cache)`` returns a copy that shares no mutable state with the cache. None: copies are not examined."""
    release: Callable[[Any], Any] | None = None
    """``release(cache)`` frees a cache that a copy has replaced, as a pool with reference counts needs it. None: such a
    cache is only dropped."""


METHODS = CacheOperations()
LEAST_CAPACITY, MOST_CAPACITY = 16, 1000
"""A cache must have room for a few rounds, and each of its entries gets another id."""
GAMMA_OF_WINDOW = 9
"""The most drafts of a round for a cache with a window, if the caller states none."""


@judged()
def check_cache(
    make: Callable[[], Any],
    operations: CacheOperations = METHODS,
    *,
    capacity: int = 64,
    window: int = 0,
    gamma: int | None = None,
    recurrent: bool = False,
    paged: int = 0,
    **options: Unpack[CheckOptions],
) -> Sequence[Verdict]:
    """Apply the same operations to a cache and to a plain list; both must have equal contents after each.

    Every order of four small operations is tried, and rounds of speculation until the cache is full. If the cache
    stores keys and values, let ``append`` write each token's id into them, and ``read`` return the ids;
    ``docs/pytest.md`` has an example.

    Args:
        make: ``make()`` returns an empty cache for ``capacity`` tokens.
        operations: Functions that operate the cache. Needed if it has no methods ``append`` and ``crop``, or if
            ``list(cache)`` does not read it.
        capacity: The number of tokens that fit, from 16 to 1000.
        window: Number of the last tokens that a sliding window reads, 0 for none: ``read(cache)`` returns these, also
            after a crop of all drafts of a round.
        gamma: The most drafts of a round, at least 1; a round appends them and one token. Without it, a round has at
            most nine drafts if there is a window, which needs a spare entry for each, and else as many as fit.
        recurrent: Whether the cache is a recurrent state: ``read(cache)`` returns it as an array, which is compared
            with the array of a new cache after the kept tokens. A crop undoes at most the previous append.
        paged: Number of tokens per page, 0 for no pages.
        **options: See ``CheckOptions``.

    Returns:
        One verdict for each check that applies.

    Raises:
        SpeculationRefuted, SpeculationUndecided, UnusableSubject: As in ``check_verifier``.
        ValueError: For invalid operations or sizes.

    Examples:
        >>> def append(cache, tokens):
        ...     cache.extend(tokens)
        >>> def crop(cache, length):
        ...     del cache[length:]
        >>> {str(verdict.status) for verdict in check_cache(list, CacheOperations(append, crop), quick=True)}
        {'holds'}
    """
    check_callable(make, "what makes the cache", arguments=0)
    if not isinstance(operations, CacheOperations):
        raise argument_error("operations", operations, "CacheOperations(...), such as CacheOperations(read=read)")
    for name, function in operations._asdict().items():
        if function is not None:
            check_callable(function, name, arguments=2 if name in {"append", "crop"} else 1)
    check_integer(capacity, "capacity", LEAST_CAPACITY, MOST_CAPACITY)
    check_integer(window, "window", 0, capacity - 1)
    if gamma is not None:
        check_integer(gamma, "gamma", 1, capacity - 1)
    check_integer(paged, "paged", 0)
    check_flag(recurrent, "recurrent")
    if recurrent and (window or operations.fork is not None):
        raise argument_error("recurrent", recurrent, "False where window or fork are given")
    if paged and 2 * paged + 2 + paged + 1 > capacity:
        raise argument_error("capacity", capacity, f"{3 * (paged + 1)} at least, for pages of {paged}")
    cache = CacheUnderTest(
        make,
        operations.append or _method(make, "append"),
        operations.crop or _method(make, "crop"),
        operations.read or list,
        operations.length,
        operations.fork,
        capacity,
        window,
        recurrent,
        release=operations.release,
        gamma=GAMMA_OF_WINDOW if gamma is None and window else gamma,
    )
    name = name_of(make)
    subject = Subject(name, (getattr(make, "__doc__", None) or "a cache").strip().partition("\n")[0], frozenset())
    return judge(checks_plan(subject, checks_of_cache(cache, paged), Conditions(), options)._replace(replays=False))


def _method(make: Callable[[], Any], name: str) -> Callable[..., Any]:
    """Return a function that calls the method ``name`` of a cache.

    If ``make`` is a class without this method, ``ValueError`` is raised.
    """
    if isinstance(make, type) and not callable(getattr(make, name, None)):
        said = f"{make.__name__} has no method {name!r}, expected one, or CacheOperations({name}=...)"
        raise ValueError(said)  # noqa: TRY004 - what is missing is an argument
    return lambda cache, given: getattr(cache, name)(given)
