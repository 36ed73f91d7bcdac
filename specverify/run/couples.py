"""The couples of a sampler's rows and calls, watched batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from reference import Tokens
from specverify.base.verdict import Status, Verdict
from specverify.checks.samplers.independence import (
    CellOf,
    IndependenceFound,
    IndependencePlan,
    couples_in,
    couples_seen,
    independence_status,
    independence_verdict,
)

Batch = tuple[Sequence[Tokens], Sequence[Tokens]]
"""The answers of two calls with different seeds, equally many."""
LAGS = 8


class Watch(NamedTuple):
    """Rows of one call, and rows of two calls."""

    seen: Callable[[Batch], None]
    statuses: Callable[[], Sequence[Status]]
    verdicts: Callable[[Sequence[str]], Sequence[Verdict]]
    """``verdicts(notes)``: the notes stand under the verdict on calls."""


def watch(name: str, cell: CellOf, alarm: float, error: float, tolerance: float, most_couples: int) -> Watch:
    """Return what is told of every batch; ``alarm`` is of each of the two questions."""
    rows, calls = (
        IndependencePlan(what, check, cell, alarm, error, tolerance, most_couples)
        for what, check in (
            ("rows of one call", "rows_are_independent"),
            ("rows of two calls", "calls_are_independent"),
        )
    )
    in_rows, in_calls, number = IndependenceFound(), IndependenceFound(), 0

    def seen(batch: Batch) -> None:
        nonlocal in_rows, in_calls, number
        lag = 2 ** (number // 2 % LAGS) if number % 2 else 1
        number += 1
        for answer in batch:
            in_rows = couples_seen(rows, in_rows, *couples_in(answer, lag if 2 * lag <= len(answer) else 1))
        in_calls = couples_seen(calls, in_calls, *batch)

    def verdicts(notes: Sequence[str]) -> Sequence[Verdict]:
        return [independence_verdict(name, rows, in_rows, []), independence_verdict(name, calls, in_calls, notes)]

    return Watch(seen, lambda: [independence_status(rows, in_rows), independence_status(calls, in_calls)], verdicts)
