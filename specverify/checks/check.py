"""The shape of a check: its cases, each with a function that returns an examination."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

from specverify.base.default_limits import EDGE, MOST_PROGRAMS
from specverify.base.verdict import Evidence, Examination
from specverify.laws.certain_tables import is_certain
from specverify.laws.deep_scenarios import ONE_ROW_SCENARIOS
from specverify.laws.enumeration import decoder_law, whole_run
from specverify.laws.law import Law
from specverify.laws.paths import estimated_paths
from specverify.laws.rounding import FLOAT32, of_decision
from specverify.laws.scenarios import Scenario
from specverify.reference import Claim, Draws
from specverify.subjects.subject import EngineProgram, InScenario, Situation, Subject

Here = TypeVar("Here", bound=Situation)

PATHS_IN_REACH = 4000
"""What one case may take of a decode that cannot be followed round by round."""
PATHS_OF_ONE_ROW = 2000
"""The same of one round in which one row is open."""
ORDERED = 5
"""Tokens whose orders can all be followed."""


class Conditions(NamedTuple):
    """The settings of a run that its checks use: enumeration runs, seed, share of the alarm budget."""

    runs: int = 200_000
    seed: int = 0
    false_alarm: float = 1e-6
    miss: float = 1e-3
    jobs: int = 1
    """Processes that share a long enumeration, or sampled settings."""
    paths: int = 1000
    """Paths on which random numbers are followed in one case, for whether one is used twice."""
    apart: int = 1
    """Every how many of the texts of a scenario a verifier is called at boundary draws; 1 is all."""
    edge: float = EDGE
    """The probability per draft from which on a fault at an end of a random number refutes."""
    replays: int = 140
    """Cap on the replays of one engine program in other states of the world."""


class Case(NamedTuple):
    """One subject in one situation, and the examination of it by one check. A replay repeats a case."""

    subject: Subject
    situation: Situation
    examine: Callable[[Conditions], Examination]


class Check(NamedTuple):
    """One property. One file per check; ``specverify.checks`` lists them."""

    name: str
    summary: str
    claim: Claim | None
    """The claim it tests, or None for what every subject owes."""
    evidence: Evidence
    obstacle: Callable[[Subject], str | None]
    """Why the check says nothing of a subject, or None when it applies."""
    cases: Callable[[Subject], Iterable[Case]]


def cases_of(
    situations: Callable[[Subject], Iterable[Here]], examine: Callable[[Here, Conditions], Examination]
) -> Callable[[Subject], Iterator[Case]]:
    """Return one case per situation."""

    def cases(subject: Subject) -> Iterator[Case]:
        return (Case(subject, here, partial(examine, here)) for here in situations(subject))

    return cases


def in_scenarios(keep: Callable[[Scenario], bool] = lambda scenario: True) -> Callable[[Subject], Iterator[InScenario]]:
    """Return the cases of every variant in every scenario that ``keep`` accepts, in order."""

    def situations(subject: Subject) -> Iterator[InScenario]:
        for scenario in subject.scenarios:
            if keep(scenario) and (subject.stops_at_eos or not scenario.eos):
                for variant in subject.variants:
                    yield InScenario(variant, scenario, subject.rational)

    return situations


def in_deep_scenarios(subject: Subject) -> Iterator[InScenario]:
    """Return the additional situations of the subject beyond its variants and scenarios, in order."""
    for variant, scenario in subject.deep():
        yield InScenario(variant, scenario, subject.rational)


def case_of_program(check: Check, subject: Subject, program: EngineProgram) -> Case | None:
    """Return the case of one program of an engine, or None if the check does not apply to it."""
    return next(iter(check.cases(subject._replace(variants=(), programs=(program,), settings=(), pairs=()))), None)


def needs_variants(subject: Subject) -> str | None:
    """Return the reason why a subject cannot be enumerated, or None; shared by all checks that enumerate."""
    return None if subject.variants else "its draws cannot be enumerated, only sampled"


def only_sampled(subject: Subject, reason: object) -> str:
    """Return the sentence about a subject whose draws cannot be enumerated because of ``reason``."""
    by = " (samples_fit_law, in a test with sampled=True)" if subject.settings else ""
    return f"cannot be enumerated, only sampled{by}: {reason}"


@lru_cache(maxsize=4096)
def law_in(here: InScenario, runs: int) -> Law:
    """Return the law of the new tokens in a scenario; the result is shared by several checks."""
    return decoder_law(here.remembering, here.prompt, runs)


def beyond_reach(case: Case) -> bool:
    """Return whether a whole decode has too many paths; such a case is left out if other cases remain."""
    here = case.situation
    if isinstance(here, EngineProgram):
        return here.most_paths < math.inf and paths_of_program(here.open) > here.most_paths
    if not isinstance(here, InScenario) or here.scenario.order:  # states of a fixed order are merged, or refused
        return False
    if case.subject.whole:
        return paths_of_whole(here) > PATHS_IN_REACH
    if here.scenario in ONE_ROW_SCENARIOS and here.scenario.vocabulary > ORDERED:
        return paths_of_one_row(here) > PATHS_OF_ONE_ROW
    certain = case.subject.most_runs == math.inf or is_certain(here.scenario.shape)
    return not certain and runs_by_round(here) > case.subject.most_runs


def may_be_refused(case: Case) -> bool:
    """Return whether a case may be left out if one draw has too many outcomes; other cases have fewer."""
    return isinstance(case.situation, InScenario) and case.situation.scenario in ONE_ROW_SCENARIOS


@lru_cache(maxsize=MOST_PROGRAMS)
def paths_of_program(opened: Callable[[], AbstractContextManager[Callable[[Draws], Any]]]) -> float:
    """Return the approximate number of paths of a program."""
    with opened() as run:
        return estimated_paths(run)


@lru_cache(maxsize=4096)
def runs_by_round(here: InScenario) -> float:
    """Return the approximate number of runs for the law of a decoder: one first round at each text before the last."""
    decoder, scenario = here.decoder, here.scenario
    first = decoder.init(here.prompt)
    texts = sum(float(scenario.vocabulary) ** length for length in range(scenario.horizon))
    return texts * estimated_paths(lambda draws: decoder.step(draws, first))


@lru_cache(maxsize=4096)
def paths_of_one_row(here: InScenario) -> float:
    """Return the approximate number of paths of a round in which one row is not one-hot.

    The vocabularies are larger there than elsewhere, and a program that sorts all tokens has a path for each order.
    """
    decoder = here.decoder
    return estimated_paths(lambda draws: decoder.step(draws, decoder.init(here.prompt)), probes=3)


@lru_cache(maxsize=4096)
def paths_of_whole(here: InScenario) -> float:
    """Return the approximate number of paths of a whole decode without merging states."""
    return estimated_paths(whole_run(here.decoder, here.prompt))


def slack(here: InScenario, decisions: int, epsilon: float = FLOAT32) -> float:
    """Return the rounding error of a probability over ``decisions`` decisions; 0 for rationals.

    ``epsilon`` is the spacing of the floats at 1.
    """
    return 0.0 if here.rational else decisions * of_decision(epsilon, here.scenario.vocabulary)
