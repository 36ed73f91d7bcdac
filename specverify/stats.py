"""The statistics run: every algorithm and engine at sizes beyond enumeration, planned together, one alarm budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from reference import ALGORITHMS
from specverify.catalogue import ENGINES, find_subject
from specverify.checks.check import Conditions
from specverify.checks.samples_fit_law import FitRow, rows_of, tests_of
from specverify.statistics import AlarmBudget, divide_alarm
from specverify.subjects.algorithm import sampled_setting
from specverify.subjects.subject import SampledSetting

SIZES: tuple[tuple[int, float, int | None, int], ...] = ((8, 0.5, None, 3), (8, 1.5, None, 3), (64, 1.0, 8, 3))
"""(vocabulary, temperature, top-k, horizon); reference rows take them in turn, one each, beside their exact checks."""
REFERENCE_TV = 0.02
"""The total variation every reference row must be able to see; engines declare their own."""


class PlannedSetting(NamedTuple):
    """A setting and whose it is."""

    subject: str
    setting: SampledSetting


class StatisticsPlan(NamedTuple):
    """All settings of a run, and the alarm budget they share."""

    settings: tuple[PlannedSetting, ...]
    budget: AlarmBudget
    seed: int
    miss: float


def plan_statistics(alarm: float, seed: int, engines: bool = True, miss: float = 1e-3) -> StatisticsPlan:
    """Return the plan: engines first, because theirs are the longest settings."""
    listed = [
        PlannedSetting(name, setting)
        for name in (ENGINES if engines else ())
        for setting in find_subject(name).settings
    ]
    listed += [
        PlannedSetting(f"reference:{row.name}", sampled_setting(row, *size, detect=REFERENCE_TV))
        for row, size in zip(ALGORITHMS, cycle(SIZES), strict=False)
    ]
    return StatisticsPlan(
        tuple(listed), divide_alarm(alarm, sum(tests_of(item.setting) for item in listed)), seed, miss
    )


def run_statistics(
    plan: StatisticsPlan, jobs: int, progress: Callable[[PlannedSetting], None] = lambda item: None
) -> Sequence[FitRow]:
    """Sample and judge every setting on ``jobs`` processes; ``progress`` is told of each that is done.

    Rows come in the order of subjects, whatever order they finish in.
    """
    conditions = Conditions(seed=plan.seed, false_alarm=plan.budget.each, miss=plan.miss)
    found: dict[int, list[FitRow]] = {}
    for index, rows in _judged(plan, conditions, jobs):
        found[index] = rows
        progress(plan.settings[index])
    return sorted((row for rows in found.values() for row in rows), key=lambda row: _position(plan, row))


def _judged(plan: StatisticsPlan, conditions: Conditions, jobs: int) -> Iterator[tuple[int, list[FitRow]]]:
    if jobs == 1:
        for index in range(len(plan.settings)):
            yield _judge(plan, conditions, index)
        return
    from joblib import Parallel, delayed  # noqa: PLC0415 - loaded only to sample

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    yield from parallel(delayed(_judge)(plan, conditions, index) for index in range(len(plan.settings)))


def _judge(plan: StatisticsPlan, conditions: Conditions, index: int) -> tuple[int, list[FitRow]]:
    item = plan.settings[index]
    return index, rows_of(item.subject, item.setting, conditions)


def _position(plan: StatisticsPlan, row: FitRow) -> tuple[int, int]:
    names = [item.subject for item in plan.settings]
    settings = [(item.subject, item.setting.name) for item in plan.settings]
    return names.index(row.subject), settings.index((row.subject, row.setting))
