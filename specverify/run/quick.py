"""The quick plan: a fixed list of cases for each kind of subject and each check, the most effective cases first.

The lists are data, ``quick.toml``. ``python -m specverify.trust.quick_power plan`` computes them from the cases that
refute planted bugs, wrong engines and wrong variants of common code. A case is named by its variant (options of the
subject) and its scenario (models, prompt, horizon), or by its program. The plan does not depend on the clock or the
machine.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, NamedTuple

from specverify.checks import Case, Check, Conditions
from specverify.laws.certain_tables import FEW, OPEN
from specverify.laws.deep_scenarios import QUICK_SCENARIOS, has_last_rows_open, is_of_whole_trees
from specverify.subjects.subject import EngineProgram, FewPaths, InScenario, KernelSetting, LongDecode

FEW_CASES = 8
"""Number of cases of a check that a plan does not list, in addition to as many cases of ``law_is_target``."""
MOST_CASES, LEAST_CASES = 16, 2
"""If a kind of subject has no plan: a third of the cases of a check, but at most and at least these numbers."""
OPEN_ROWS = 5
"""Open rows in all cases of a variant with scenarios of its own: one for each level of the deep tree, and one after."""
MOST_REPLAYS, PATHS, APART = 40, 100, 3
"""Replays of a program, paths on which the use of random numbers is followed, and stride of the boundary draws."""

CaseName = tuple[str, str]
"""(label of the variant, name of the scenario), or ("", name of the program)."""


class ChosenCases(NamedTuple):
    """The cases of a check that the quick plan examines, the number of other cases, and some of these as a substitute.

    The substitutes are tried if none of the chosen cases can be examined.
    """

    cases: Iterable[Case]
    left_out: int
    """The number of cases that are not chosen."""
    instead: Sequence[Case] = ()
    """Some of the other cases; if no chosen case can be examined, these are tried until one can."""


class RunLimits(NamedTuple):
    """Limits of the runs that the cases of a check may take; the verdict names the cases that need more.

    ``of_case`` is the most runs of one case. Once earlier cases of the check have taken ``of_check`` runs, a case may
    take only ``of_small_case``. ``counted`` names, in a message, the cases whose runs count towards ``of_check``.
    """

    of_case: int
    of_check: int
    of_small_case: int
    counted: str


ENGINE_LIMITS = RunLimits(4_000, 10_000, 100, "all cases")
"""For engines, whose runs decode whole texts. Small cases are examined first."""
USUAL_TOKENS = 12
"""An engine program with more new tokens in a run may take fewer runs, in proportion: its runs take as much longer."""
OTHER_LIMITS = RunLimits(20_000, 20_000, 500, "skipped cases")
"""For other subjects. Code that draws in a loop until a token is accepted has too many runs in most cases."""


def in_quick(conditions: Conditions) -> Conditions:
    """Return ``conditions`` with its limits reduced to those of the quick plan.

    The number of runs, paths and replays becomes smaller, and boundary draws are tested on fewer texts.
    """
    return conditions._replace(
        runs=min(conditions.runs, OTHER_LIMITS.of_case),
        paths=min(conditions.paths, PATHS),
        apart=max(conditions.apart, APART),
        replays=min(conditions.replays, MOST_REPLAYS),
    )


class RunsTaken(NamedTuple):
    """The numbers of runs that the earlier cases of a check have taken: all of them, and the skipped ones alone."""

    by_all: int = 0
    by_skipped: int = 0

    def after_examined(self, runs: int) -> RunsTaken:
        """Return the numbers after one more case was examined, in ``runs`` runs."""
        return self._replace(by_all=self.by_all + runs)

    def after_skipped(self, runs: int) -> RunsTaken:
        """Return the numbers after one more case was skipped, after ``runs`` runs."""
        return RunsTaken(self.by_all + runs, self.by_skipped + runs)


NO_RUNS = RunsTaken()


def _limits(case: Case) -> RunLimits:
    return ENGINE_LIMITS if isinstance(case.situation, EngineProgram) else OTHER_LIMITS


def most_runs(case: Case, conditions: Conditions, taken: RunsTaken = NO_RUNS) -> int:
    """Return how many runs ``case`` may take in the quick plan, after earlier cases of the check have ``taken`` some.

    ``conditions`` are the settings of the check, already reduced by ``in_quick``.
    """
    limits = _limits(case)
    counted = taken.by_all if limits is ENGINE_LIMITS else taken.by_skipped
    scaled = limits.of_case * USUAL_TOKENS // max(USUAL_TOKENS, _tokens(case))
    of_case = max(scaled, min(limits.of_small_case, limits.of_case))
    return min(conditions.runs, of_case, max(limits.of_small_case, limits.of_check - counted))


def _tokens(case: Case) -> int:
    """Return the number of new tokens in a run of ``case``; 0 if it is not known."""
    return case.situation.tokens if isinstance(case.situation, EngineProgram) else 0


def first_runs(case: Case, most: int) -> int | None:
    """Return the limit of runs for the first attempt at ``case``; None if there is only one attempt.

    An engine program gets few runs at first. If they do not suffice, it is examined again after all other cases, with
    the limit ``most``. There is only one attempt if ``most`` is no larger than the first limit, or for other cases.
    """
    limits = _limits(case)
    return limits.of_small_case if limits is ENGINE_LIMITS and most > limits.of_small_case else None


def second_runs(case: Case, most: int) -> int | None:
    """Return the number of runs in which the second attempt at ``case`` must follow all paths; None if it need not.

    A program with more than the usual number of tokens gets half of its limit ``most``. It is skipped without a run if
    it seems to have more paths than ``most``.
    """
    return most // 2 if _tokens(case) > USUAL_TOKENS else None


def runs_in_words(case: Case, conditions: Conditions, taken: RunsTaken) -> str:
    """Return in words how many runs the quick plan allows for ``case``, for a message: for example "20000".

    ``conditions`` are the settings of the check, which contain this limit, and ``taken`` the runs of all cases. If they
    made the limit smaller, the text is, for example, "4000 (100 after 10000 of all cases)": at most 4000 runs, or at
    most 100 after all earlier cases of the check took 10000 runs.
    """
    limits, most = _limits(case), most_runs(case, conditions)
    smaller = most_runs(case, conditions, taken) < most
    return f"{most} ({limits.of_small_case} after {limits.of_check} of {limits.counted})" if smaller else str(most)


def quick_cases(kind: str, check: Check, cases: Iterable[Case]) -> ChosenCases:
    """Return the cases of a check that the quick plan examines for this ``kind`` of subject.

    * If the plan lists the kind and the check: the listed cases.
    * If the plan lists only the kind: cases that it lists for the check ``law_is_target``, and evenly spaced ones; all
      of them if they are at most ``MOST_CASES``.
    * If the plan does not list the kind: cases chosen by ``_without_plan``.

    If none of them is among ``cases``, evenly spaced cases are chosen. Long decodes, tables of engines with few paths,
    and long texts of which pairs are compared take few runs and are always examined. The check ``law_is_target`` also
    gets the cases in ``QUICK_SCENARIOS``, those of engines at unusual sizes, and some with planned batches;
    ``draws_are_independent`` gets ``OF_REUSE``, and ``values_match`` gets ``OF_VALUES``.
    """
    listed, plan = list(cases), quick_plans().get(kind)
    if plan is None:
        chosen = _without_plan(check, listed, min(MOST_CASES, max(LEAST_CASES, -(-len(listed) // 3))))
    else:
        named = named_cases(listed, plan.get(check.name) or _names_of_others(listed, plan))
        chosen = named or spread(listed, FEW_CASES)
    chosen += [case for case in listed if _takes_few_runs(case) and case not in chosen]
    if always := _ALWAYS.get(check.name):
        chosen = [*chosen, *(case for case in listed if always(case) and case not in chosen)]
    names = set(map(name_of_case, chosen))
    others = [case for case in listed if name_of_case(case) not in names]
    return ChosenCases(chosen, len(listed) - len(chosen), spread(others, FEW_CASES))


def _without_plan(check: Check, cases: Sequence[Case], most: int) -> list[Case]:
    """Return about ``most`` of the ``cases`` of ``check``, for a kind of subject that the plan does not list.

    * First, at most ``most`` / 2 cases of one generic scenario, one for each variant of the subject (its options).
    * Then one case of each of ``_first_scenarios``: variant 1 in the first scenario, variant 2 in the second, etc.
    * Then, if the check is ``law_is_target``, the cases of ``_of_special_variants``, all of them.
    * The rest, up to ``most`` cases, are evenly spaced in ``cases``.

    If the cases have no scenarios, such as those of a drafter, all are evenly spaced.
    """
    by_scenario: dict[str, list[Case]] = {}
    for case in cases:
        if not isinstance(case.situation, EngineProgram):
            by_scenario.setdefault(name_of_case(case)[1], []).append(case)
    scenarios = _first_scenarios(check, by_scenario, most)
    in_turn = [by_scenario[where][number % len(by_scenario[where])] for number, where in enumerate(scenarios)]
    first = [*by_scenario.get(GENERIC, ())[: most // 2], *in_turn]
    if check.name == "law_is_target":
        first += _of_special_variants(by_scenario)
    chosen = {name_of_case(case): case for case in first}
    chosen |= {name_of_case(case): case for case in spread(cases, max(most - len(chosen), 1))}
    return list(chosen.values())[: max(most, len(first))]


def _of_special_variants(scenarios: Mapping[str, Sequence[Case]]) -> list[Case]:
    """Return some cases of each variant that has no case in the generic scenario.

    ``scenarios`` has the cases by the name of their scenario. Such a variant has scenarios of its own, for faults that
    other variants cannot show: at late drafts, at deep levels of a tree, at a fourth sibling. In these scenarios all
    rows of p and q but a few *open* ones are one-hot. For each variant the cases with the longest texts are returned,
    until their open rows exceed ``OPEN_ROWS``.
    """
    by_variant: dict[str, list[Case]] = {}
    for where, cases in scenarios.items():
        for case in cases if where.startswith((OPEN, FEW)) else ():
            by_variant.setdefault(name_of_case(case)[0], []).append(case)
    generic = {name_of_case(case)[0] for case in scenarios.get(GENERIC, ())}
    result: list[Case] = []
    for cases in (cases for label, cases in by_variant.items() if label not in generic):
        longest = max(map(_horizon, cases))
        long = [case for case in cases if _horizon(case) == longest]
        rows = accumulate(map(_open_rows, long))
        result += [case for case, used in zip(long, rows, strict=True) if used <= OPEN_ROWS]
    return result


def _horizon(case: Case) -> int:
    here: Any = case.situation
    return here.scenario.horizon  # type: ignore[no-any-return]  # a situation with a scenario


def _open_rows(case: Case) -> int:
    table, _, _ = name_of_case(case)[1].partition("-")
    return table.removeprefix(OPEN).removeprefix(FEW).count("_")


def _first_scenarios(check: Check, scenarios: Iterable[str], most: int) -> Sequence[str]:
    """Return the names of the scenarios with which ``_without_plan`` begins, selected from ``scenarios``.

    The plan of the kind "row" is that of verifiers of a single row. If it lists ``check``, the result is what it lists
    for the check ``law_is_target``, but at most ``most`` / 2 + 1 scenarios. Otherwise there is one scenario for each
    shape of tables of p and q: for the first shape the scenario with the smallest vocabulary, for the second shape the
    one with the largest, and so on alternately.
    """
    plan, here = quick_plans()["row"], list(scenarios)
    if check.name in plan:
        names = dict.fromkeys(where for _, where in plan["law_is_target"] if where in here)
        return list(names)[: most // 2 + 1]
    # the last of a shape too: a fault that needs a residual of several tokens shows only with a large vocabulary
    shapes: dict[str, list[str]] = {}
    for where in here:
        shapes.setdefault(where.partition("-")[0], []).append(where)
    return [names[-(number % 2)] for number, names in enumerate(shapes.values())]


GENERIC = "generic-v3-p010-h3-s2"
OF_REUSE = ("", "point_draft-v3-p010-h3-s8")
"""A case of engines with few paths, for ``draws_are_independent``. Residuals of two tokens have thresholds on both
sides of those of the tests: a number that tests a draft and also chooses its replacement is seen to decide twice."""


def _takes_few_runs(case: Case) -> bool:
    here = case.situation
    return isinstance(here, LongDecode | FewPaths) or (isinstance(here, KernelSetting) and here.in_quick)


OF_VALUES = {("", "generic-v2-p0-h2-s22-e1"), ("", "generic-v2-p0-h3-s1841-e1")}
"""Cases of engines for ``values_match`` whose texts may end at random. A mask of the end token changes the rows, and so
the values of the tokens, only where the end token is one of several."""


def _compares_always(case: Case) -> bool:
    """Return whether the quick plan of ``law_is_target`` has ``case`` even if ``quick.toml`` does not list it.

    Such a case is an engine program marked ``in_quick``, a variant in one of ``QUICK_SCENARIOS``, or one in a scenario
    of its largest number of drafts: with open last rows, or with a whole tree.
    """
    here = case.situation
    if isinstance(here, InScenario):
        at_its_size = has_last_rows_open(here.scenario) or is_of_whole_trees(here.scenario)
        return at_its_size or here.scenario in QUICK_SCENARIOS
    return isinstance(here, EngineProgram) and here.in_quick


_ALWAYS: Mapping[str, Callable[[Case], bool]] = {
    "law_is_target": _compares_always,
    "draws_are_independent": lambda case: name_of_case(case) == OF_REUSE,
    "values_match": lambda case: name_of_case(case) in OF_VALUES,
}
"""Check -> whether its quick plan has a case even if ``quick.toml`` does not list it."""


@cache
def quick_plans() -> Mapping[str, Mapping[str, Sequence[CaseName]]]:
    """Return the names of the cases of a quick run, in order, by the kind of the subject and then by the check."""
    result: Mapping[str, Mapping[str, Any]] = tomllib.loads(
        files("specverify.run").joinpath("quick.toml").read_text("utf-8")
    )
    return {
        kind: {check: [(label, where) for label, where in names] for check, names in plan.items()}
        for kind, plan in result.items()
    }


def name_of_case(case: Case) -> CaseName:
    """Return the name of a case: (label of the variant, name of the scenario).

    A variant is a subject with options; a scenario has models, prompt and horizon. A case without them has the name
    ("", name of its program or setting).
    """
    here: Any = case.situation
    if hasattr(here, "scenario") and hasattr(here, "variant"):
        return here.variant.label, here.scenario.name
    return "", getattr(here, "name", "")


def _names_of_others(cases: Sequence[Case], plan: Mapping[str, Sequence[CaseName]]) -> list[CaseName]:
    """Return the names of cases to examine for a check that the plan does not list.

    They are cases of the plan's list for the check ``law_is_target``, followed by evenly spaced ones; all are among
    ``cases``, the cases of the check. If these are few, all are examined. ``plan`` maps each listed check to the names
    of its cases.
    """
    if len(cases) <= MOST_CASES:
        return [*map(name_of_case, cases)]
    names = {name_of_case(case) for case in cases}
    mine = [name for name in plan["law_is_target"] if name in names]
    return [*mine[:FEW_CASES], *map(name_of_case, spread(cases, FEW_CASES))]


def spread(cases: Sequence[Case], most: int) -> list[Case]:
    """Return at most ``most`` evenly spaced cases, beginning with the first."""
    most = min(most, len(cases))
    return [cases[place * len(cases) // most] for place in range(most)]


def named_cases(cases: Sequence[Case], names: Sequence[CaseName]) -> list[Case]:
    """Return the cases with these ``names``, which are pairs (variant, scenario).

    If no case has the named variant in a scenario, the cases of all variants in this scenario are returned.
    """
    by_scenario: dict[str, dict[str, Case]] = {}
    for case in cases:
        label, where = name_of_case(case)
        by_scenario.setdefault(where, {})[label] = case
    chosen: dict[CaseName, Case] = {}
    for label, where in names:
        there = by_scenario.get(where, {})
        for case in [there[label]] if label in there else there.values():
            chosen.setdefault(name_of_case(case), case)
    return list(chosen.values())
