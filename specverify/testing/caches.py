"""Caches: what holds the entries of tokens, and forgets those of rejected drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

from specverify.base.arguments import argument_error, check_callable, check_count, check_flag
from specverify.checks import Conditions
from specverify.checks.caches import checks_of_cache
from specverify.subjects.cache import CacheUnderTest
from specverify.subjects.subject import Subject
from specverify.testing.judged import judged
from specverify.testing.plans import Judging, Plan, checks_plan, name_of


@judged
def check_cache(
    make: Callable[[], Any],
    *,
    append: Callable[..., Any] | None = None,
    crop: Callable[..., Any] | None = None,
    read: Callable[..., Any] | None = None,
    length: Callable[..., Any] | None = None,
    fork: Callable[..., Any] | None = None,
    capacity: int = 64,
    window: int = 0,
    recurrent: bool = False,
    paged: int = 0,
    **how: Unpack[Judging],
) -> Plan:
    """Drive a cache and a plain list by the same operations; they must hold the same after each.

    ``make()`` returns an empty cache for ``capacity`` tokens. ``append(cache, tokens)`` adds the entries of a tuple of
    token ids, each below 1000; ``crop(cache, length)`` keeps the first ``length``; ``read(cache)`` returns the ids of
    what is held, in order, as ``[held]``. Where they are left out the methods ``append`` and ``crop``, and
    ``list(cache)``, are used. ``length(cache)`` is what the cache says of itself; ``fork(cache)`` makes a copy that
    shares nothing that can change. A function may change the cache or return another one of its type.

    ``window`` is the number of the last tokens that a sliding window reads: ``read(cache)`` returns those, also behind
    a crop that takes back the up to nine drafts of a round. With ``recurrent`` the cache is a state: ``read(cache)``
    returns it as an array, which is compared with that of a new cache fed the kept tokens, and a crop undoes no more
    than the append before it. ``paged`` is the size of a page.

    Every order of four small operations is tried, and rounds of speculation until the cache is full. For keys and
    values write a token's id into them, and read it back: ``docs/pytest.md`` has an example.
    """
    check_callable(make, "what makes the cache", arguments=0)
    given = {"append": append, "crop": crop, "read": read, "length": length, "fork": fork}
    for name, function in given.items():
        if function is not None:
            check_callable(function, name, arguments=2 if name in {"append", "crop"} else 1)
    check_count(capacity, "capacity", least=16)
    for size, what in ((window, "window"), (paged, "paged")):
        if size:
            check_count(size, what)
    check_flag(recurrent, "recurrent")
    if recurrent and (window or fork is not None):
        raise argument_error("recurrent", recurrent, "False where window or fork are given")
    if paged and 2 * paged + 2 + paged + 1 > capacity:
        raise argument_error("capacity", capacity, f"{3 * (paged + 1)} at least, for pages of {paged}")
    cache = CacheUnderTest(
        make,
        append or _method(make, "append"),
        crop or _method(make, "crop"),
        read or list,
        length,
        fork,
        capacity,
        window,
        recurrent,
    )
    name = name_of(make)
    subject = Subject(name, (getattr(make, "__doc__", None) or "a cache").strip().partition("\n")[0], frozenset())
    return checks_plan(subject, checks_of_cache(cache, paged), Conditions(), how)._replace(replays=False)


def _method(make: Callable[[], Any], name: str) -> Callable[..., Any]:
    """Return the method of a cache, looked up when it is called."""
    if isinstance(make, type) and not callable(getattr(make, name, None)):
        said = f"{make.__name__} has no method {name!r}, expected one, or {name}=, a function of the cache"
        raise ValueError(said)  # noqa: TRY004 - what is missing is an argument
    return lambda cache, given: getattr(cache, name)(given)
