"""Plan and run the statistics of all algorithms and engines beyond enumerable sizes, with one alarm budget.

All runs of a sample are usually made together: each draw divides the number of runs among its outcomes. So many runs
are cheap, and a total variation of 0.002 can be detected. Registry algorithms and engines are sampled in this way; the
random calls of an engine are replaced by such draws.

As a control of this method, a few algorithms are also sampled run by run. Half of the settings of an engine (the first,
third, fifth and so on) are also sampled with the engine's own random numbers; if the user names the engine, all of them
are. A setting whose random calls cannot be replaced is sampled only with the engine's own random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle
from typing import NamedTuple

from specverify.base.parallel import as_finished
from specverify.checks.check import Conditions
from specverify.checks.samples_fit_law import FitRow, fit_rows, tests_of
from specverify.engines import engine_subjects
from specverify.reference import ALGORITHMS, Algorithm
from specverify.run.catalogue import find_subject
from specverify.statistics import AlarmBudget, divide_alarm
from specverify.subjects.algorithm import sampled_setting
from specverify.subjects.subject import Cost, Method, SampledSetting, UnusableSubject

SIZES: tuple[tuple[int, float, int | None, int], ...] = ((8, 0.5, None, 3), (8, 1.5, None, 3), (64, 1.0, 8, 3))
"""(vocabulary, temperature, top-k, horizon); each algorithm of the registry is sampled at one of them, in turn."""
DENSE = ("triforce-released", "spectr-gbv-released", "scheduled-verification", "lockstep-batch")
"""Algorithms whose rounds draw a second block in addition to the first. They are sampled at the first of ``SIZES``,
because other sizes have ten to forty times as many paths."""
CONTROLS = ("speculative-sampling", "nasd", "confidence-stopping", "rsd")
"""Algorithms that are also sampled by separate runs, as a control of the other method of sampling."""
SAMPLES_TIMES_TV_SQUARED = 60
"""The number of samples is about this divided by the squared total variation to detect; used for cost estimates."""


class Scope(NamedTuple):
    """The total variations that a statistics run detects, and how many settings it samples.

    * ``divided``: The total variation for subjects whose runs are made together, divided among the paths.
    * ``control``: The total variation for algorithms that are sampled run by run.
    * ``every_size``: True: algorithms are sampled at every size, and engines with their own random numbers in every
      setting. False: algorithms are sampled at one size, and engines with their own random numbers in half of the
      settings.
    """

    divided: float
    control: float
    finer: float | None
    """Factor for the total variation of engines with their own random numbers; None excludes engines."""
    every_size: bool = False


USUAL = Scope(divided=0.002, control=0.03, finer=0.75)
QUICK = Scope(divided=0.02, control=0.1, finer=None)
THOROUGH = Scope(divided=0.001, control=0.02, finer=0.3, every_size=True)


class PlannedSetting(NamedTuple):
    """A setting (subject with options) to sample, the name of its subject, and whether it is a control."""

    subject: str
    setting: SampledSetting
    control: bool = False
    """Whether it is sampled run by run although its counts could be divided."""

    @property
    def cost(self) -> float:
        """Return the estimated cost in seconds of one processor."""
        one = self.setting.cost
        return one.once + tests_of(self.setting) * one.each * SAMPLES_TIMES_TV_SQUARED / self.setting.detect**2


class StatisticsPlan(NamedTuple):
    """All settings of a run, subject by subject, and the false-alarm probability that they share (``budget``).

    The subjects are in the order in which the user named them; by default they are in the order of the registry.
    ``miss`` is the probability with which a bias of the planned total variation is missed, and ``seed`` the seed of all
    samples.
    """

    settings: tuple[PlannedSetting, ...]
    budget: AlarmBudget
    seed: int
    miss: float


class JudgedSetting(NamedTuple):
    """The results of one sampled setting (subject with options).

    ``rows`` has one result for each law against which the setting was tested, and ``place`` is the index of the setting
    in the plan.
    """

    place: int
    rows: tuple[FitRow, ...]


def plan_statistics(
    alarm: float, seed: int, scope: Scope = USUAL, subjects: Sequence[str] = (), miss: float = 1e-3
) -> StatisticsPlan:
    """Return the plan of the named ``subjects``; by default all registry algorithms and all engines.

    ``alarm`` is the false-alarm probability of the whole run, ``scope`` the total variations to detect, and ``miss``
    the probability with which such a bias is missed. ``seed`` is the seed of all samples. Raises ``UnusableSubject``
    for an unknown name, and for a named subject without a setting to sample.
    """
    names = subjects or (*(_name(row) for row in ALGORITHMS), *(() if scope.finer is None else engine_subjects()))
    settings = tuple(planned for name in dict.fromkeys(names) for planned in _planned(name, scope, name in subjects))
    return StatisticsPlan(settings, divide_alarm(alarm, sum(tests_of(item.setting) for item in settings)), seed, miss)


def run_statistics(plan: StatisticsPlan, jobs: int) -> Iterator[JudgedSetting]:
    """Sample and test every setting of ``plan`` in ``jobs`` processes, cheapest first.

    Each result is yielded as soon as it is ready.
    """
    conditions = Conditions(seed=plan.seed, false_alarm=plan.budget.each, miss=plan.miss)
    order = sorted(range(len(plan.settings)), key=lambda place: plan.settings[place].cost)
    works: list[Callable[[], list[FitRow]]] = [partial(_judge, plan.settings[place], conditions) for place in order]
    for index, rows in as_finished(works, jobs):
        yield JudgedSetting(order[index], tuple(rows))


def in_order(judged: Sequence[JudgedSetting]) -> list[FitRow]:
    """Return the results of all finished settings ``judged``, in the order of the plan: a row for each tested law."""
    return [row for item in sorted(judged) for row in item.rows]


def _judge(item: PlannedSetting, conditions: Conditions) -> list[FitRow]:
    return fit_rows(item.subject, item.setting, conditions)


def _planned(name: str, scope: Scope, named: bool) -> Iterator[PlannedSetting]:
    result = {
        _name(row): (row, SIZES[0] if row.name in DENSE else size)
        for row, size in zip(ALGORITHMS, cycle(SIZES), strict=False)
    }
    if name in result:
        yield from _of_algorithm(name, *result[name], scope)
        return
    settings = find_subject(name).settings
    if not settings and named:
        raise UnusableSubject(f"{name} has no setting to sample")
    for place, setting in enumerate(settings):
        if named or scope.every_size or place % 2 == 0 or not setting.divided:
            yield PlannedSetting(name, setting._replace(detect=setting.detect * (scope.finer or 1.0)))
    for setting in settings:
        if setting.divided:
            cost = Cost(once=OF_A_DIVIDED_ENGINE)
            divided = setting._replace(
                sample=setting.divided, method=Method.DIVIDED, detect=scope.divided, cost=cost, activity=None
            )
            yield PlannedSetting(name, divided)


OF_A_DIVIDED_ENGINE = 5.0
"""Estimated seconds to sample an engine by dividing the samples among paths: some hundred runs of ten milliseconds."""


def _of_algorithm(
    name: str, row: Algorithm, size: tuple[int, float, int | None, int], scope: Scope
) -> Iterator[PlannedSetting]:
    for one in SIZES if scope.every_size else (size,):
        yield PlannedSetting(name, sampled_setting(row, *one, detect=scope.divided))
    if row.name in CONTROLS:
        plain = sampled_setting(row, *size, detect=scope.control, method=Method.PLAIN)
        yield PlannedSetting(name, plain, control=True)


def _name(row: Algorithm) -> str:
    return f"reference:{row.name}"
