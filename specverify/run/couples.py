"""Tests of independence, batch by batch: of the rows within a call of a sampler, and of rows of two calls.

A couple is a pair of rows. Couples are counted in a 4 x 4 table, in which independence is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from specverify.base.verdict import Status, Verdict
from specverify.checks.samplers.independent_rows import (
    CellOf,
    IndependenceFound,
    IndependencePlan,
    couples_in,
    couples_seen,
    independence_status,
    independence_verdict,
    shares_seen,
)
from specverify.reference import Tokens

Batch = tuple[Sequence[Tokens], Sequence[Tokens]]
"""The rows of two calls with different seeds, equally many each."""
LAGS = 8
LEAST_REPEATED = 8
"""The least number of pairs of rows of a call that must repeat."""
CONFIRMING_COUPLES = 128
"""Number of couples after which copied rows would have been detected."""
CONFIRMING_BATCHES = 8
"""Number of batches after which a random number that the rows of a call share would have been detected."""


class Watch(NamedTuple):
    """The two independence tests of a sampler: of rows of one call, and of rows of two calls.

    ``seen`` adds a batch to both tests. ``statuses``, ``verdicts`` and ``found`` return the two statuses, the two
    verdicts and the evidence of each test.
    """

    seen: Callable[[Batch], None]
    statuses: Callable[[], Sequence[Status]]
    confirming: Callable[[], bool]
    """Returns whether the tests have seen enough to detect a dependence that makes a right law look wrong."""
    verdicts: Callable[[Sequence[str]], Sequence[Verdict]]
    """``verdicts(notes)`` returns the two verdicts; the notes are added to the one on calls."""
    found: Callable[[], tuple[IndependenceFound, IndependenceFound]]
    """Returns the evidence so far: of rows of one call, and of two calls."""
    repeats: Callable[[], bool]
    """Returns whether the rows of a call seem to repeat."""


class _Repeated(NamedTuple):
    """How the rows of a call repeat: at a distance, which is ``half`` of the call; distance 0 if they do not."""

    distance: int = 0
    half: bool = False

    @property
    def words(self) -> str:
        return "half a call" if self.half else str(self.distance)

    def lag(self, rows: int) -> int:
        """Return the distance at which a call of ``rows`` rows is tested; 0 if they do not repeat or are too few."""
        lag = rows // 2 if self.half else self.distance
        return lag if 2 * lag <= rows else 0


def watch(
    name: str,
    cell: CellOf,
    alarm: float,
    error: float,
    tv: float,
    most_couples: int,
    *,
    alone: bool,
    begun: tuple[IndependenceFound, IndependenceFound] = (IndependenceFound(), IndependenceFound()),
) -> Watch:
    """Return the two independence tests of the subject ``name``. They count couples, pairs of rows, in a 4 x 4 table.

    * ``cell``: Maps an outcome to its row or column of the table, 0 to 3.
    * ``alarm``: The false-alarm rate of each test.
    * ``error``, ``tv``: A test holds if a bound on the dependence, with the error probability ``error``, is at most
      ``tv``.
    * ``most_couples``: The planned number of couples.
    * ``alone``: Whether calls have one row; then only rows of two calls are tested.
    * ``begun``: The evidence of earlier samples, for rows of one call and of two calls.
    """
    rows, calls = (
        IndependencePlan(what, check, cell, alarm, error, tv, most_couples)
        for what, check in (
            ("rows of one call", "rows_are_independent"),
            ("rows of two calls", "calls_are_independent"),
        )
    )
    (in_rows, in_calls), number, repeated = begun, 0, _Repeated()

    def seen(batch: Batch) -> None:
        nonlocal in_rows, in_calls, number, repeated
        size = len(batch[0])
        lag = repeated.lag(size) or _lag(number, size)
        in_rows = couples_seen(rows, in_rows, *_of_two_calls(batch, lag))
        in_rows = shares_seen(rows, in_rows, *batch)
        number += 1
        distance = repeated_distance(batch)
        repeated = _Repeated(distance, 2 * distance == size) if distance else repeated
        in_calls = couples_seen(calls, in_calls, *batch)

    def verdicts(notes: Sequence[str]) -> Sequence[Verdict]:
        of_calls = independence_verdict(name, calls, in_calls, notes)
        if alone:
            return [of_calls]
        what = f"rows of one call that are {repeated.words} apart" if repeated.distance else rows.what
        of_rows = independence_verdict(name, rows._replace(what=what), in_rows, [])
        if of_rows.status is Status.REFUTED and of_calls.status is Status.REFUTED:
            said = f"rows of two calls: not decided, because {of_rows.statement}"
            of_calls = of_calls._replace(status=Status.UNKNOWN, statement=said, counterexample=None)
        return [of_rows, of_calls]

    def statuses() -> Sequence[Status]:
        return [_status(rows, in_rows, alone), independence_status(calls, in_calls)]

    def confirming() -> bool:
        if in_calls.couples < CONFIRMING_COUPLES:
            return False
        return alone or (in_rows.couples >= CONFIRMING_COUPLES and in_rows.batches >= CONFIRMING_BATCHES)

    return Watch(seen, statuses, confirming, verdicts, lambda: (in_rows, in_calls), lambda: repeated.distance > 0)


def repeated_distance(batch: Batch) -> int:
    """Return the smallest distance at which the rows of both calls of ``batch`` repeat; 0 if there is none.

    They repeat if more than half of the rows that need not be equal are equal. Later batches, which this one does not
    influence, are then tested at this distance: any distance is valid there.
    """
    numbers = [np.unique([repr(row) for row in rows], return_inverse=True)[1] for rows in batch]
    by_chance = float(np.mean([(np.bincount(rows) ** 2).sum() / len(rows) ** 2 for rows in numbers]))
    for distance in range(1, len(numbers[0]) // 2 + 1):
        alike = min(float((rows[distance:] == rows[:-distance]).mean()) for rows in numbers)
        if alike > (1 + by_chance) / 2 and len(numbers[0]) - distance >= LEAST_REPEATED:
            return distance
    return 0


def _of_two_calls(batch: Batch, lag: int) -> tuple[Sequence[Tokens], Sequence[Tokens]]:
    """Return pairs of rows with the distance ``lag`` from each call of ``batch``: the first rows, and the second rows.

    The pairs come alternately from the two calls. The test compares each pair with the next one, so a random number
    that all rows of a call share is noticed too.
    """
    pairs = zip(*(zip(*couples_in(answer, lag), strict=True) for answer in batch), strict=True)
    chosen = [pair for of_both in pairs for pair in of_both]
    return [first for first, _ in chosen], [second for _, second in chosen]


def _lag(number: int, rows: int) -> int:
    """Return the distance between the two rows of a couple in the batch with this ``number`` and ``rows`` rows.

    In four successive batches the distance is 1, a power of two (which changes from time to time), 1, and half of the
    rows. The last one detects a batch that repeats its first half. A distance that does not fit into the batch is
    replaced by 1.
    """
    lag = {1: 2 ** (number // 4 % LAGS), 3: rows // 2}.get(number % 4, 1)
    return lag if 0 < 2 * lag <= rows else 1


def _status(plan: IndependencePlan, found: IndependenceFound, alone: bool) -> Status:
    """Return the status of the independence of rows in one call; NOT_APPLICABLE if each call has one row (``alone``).

    ``found`` is the evidence so far, and ``plan`` the plan of the test, such as its false-alarm rate.
    """
    return Status.NOT_APPLICABLE if alone else independence_status(plan, found)
