"""Progress through the cases of a check."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from specverify.checks import Case, Check
from specverify.subjects.subject import Subject

SECONDS_BEFORE_COUNTING, SECONDS_OF_COUNTING = 5.0, 1.0
SECONDS_BETWEEN_CASES = 0.5
"""Seconds between two reports of progress."""

CaseTold = Callable[[int, int], None]
"""``told(examined, cases)`` reports the numbers of examined cases and of all cases (0 if unknown)."""


def counted_cases(
    cases: Iterable[Case], number_of: Callable[[], int], told: CaseTold, known: int = 0
) -> Iterator[Case]:
    """Yield the cases; every half second, call ``told(number of examined cases, number of all cases)``.

    Cases are generated as they are examined, so their number is not known at first. It is ``known`` if this is not 0.
    Otherwise ``number_of()`` is called once to get it, but only if the examination takes longer than a few seconds.
    """
    number, started = known, time.perf_counter()
    asked, told_at = number > 0, started
    for examined, case in enumerate(cases):
        now = time.perf_counter()
        if not asked and now - started > SECONDS_BEFORE_COUNTING:
            number, asked = number_of(), True
        if now - told_at > SECONDS_BETWEEN_CASES:
            told(examined, number)
            told_at = now
        yield case


def number_of_cases(subject: Subject, check: Check) -> int:
    """Return the number of cases of a check of ``subject``, for the progress display.

    The number is 0 if counting fails or takes long.
    """
    until, number = time.perf_counter() + SECONDS_OF_COUNTING, 0
    try:
        for number, _ in enumerate(check.cases(subject), start=1):  # noqa: B007 - the last one is the count
            if time.perf_counter() > until:
                return 0
    except Exception:  # noqa: BLE001 - whoever examines the case says what it is
        return 0
    return number
