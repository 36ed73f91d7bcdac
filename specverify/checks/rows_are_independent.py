"""Two rows that a verifier decides in one call are independent, and each has its target's law.

Their joint law is compared with the product of the two targets' laws. One uniform used for both rows leaves the law of
each row right and makes them agree too often: only the joint law shows it. Rows that are swapped, or decided by each
other's pmfs, fail here too. Each row is continued by its target to a fixed length, so that rows of several lengths
have one law.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reference import Claim
from specverify.checks._laws import compared
from specverify.checks.check import Check, Conditions, exact_cases
from specverify.enumeration import estimated_paths, program_law
from specverify.explain import describe_case, program_counterexample, shown
from specverify.law import Law
from specverify.scenarios import Scenario
from specverify.subjects.subject import Case, EngineProgram, Subject, case_task
from specverify.verdict import Evidence, Examination

MOST_PATHS = 700
"""Paths of two rows multiply; pairs with more than about this many are left out."""


def obstacle(subject: Subject) -> str | None:
    """The subject must decide several rows in one call."""
    return None if any(variant.joint for variant in subject.variants) else "it decides one row at a time"


def _two_rounds_long(scenario: Scenario) -> bool:
    return scenario.horizon == 3 and not scenario.greedy and (scenario.vocabulary > 2 or scenario.prompt == (0,))


def cases(subject: Subject) -> Iterator[Case]:
    """Return every pair of rows that is small enough, smallest vocabulary first."""
    for case in exact_cases(_two_rounds_long)(subject._replace(variants=_in_company(subject))):
        mine = case._replace(subject=subject)
        with _program(mine).open() as run:
            few = estimated_paths(run) <= MOST_PATHS
        if few:
            yield mine


def examine(case: Case, conditions: Conditions) -> Examination:
    """Compare the joint law of two rows with the product of their targets'."""
    program = _program(case)
    expected = program.law()
    with program.open() as run:
        law = program_law(run, conditions.runs)
        found = compared(law, expected, "the product of the rows' laws")
        if found.refuted:
            example = program_counterexample(program.name, run, law.probabilities, expected)
            return Examination(
                f"{found.statement}; {_alone(law, expected)}",
                failed=True,
                rational=False,
                counterexample=example._replace(let=(describe_case(case), *example.let)),
                figures=found.figures,
            )
    said = found.statement if found.unknown else "two rows have the product of their targets' laws"
    return Examination(said, unknown=found.unknown, rational=False, figures=found.figures)


def _in_company(subject: Subject) -> tuple[Any, ...]:
    return tuple(variant for variant in subject.variants if variant.joint)


def _program(case: Case) -> EngineProgram:
    assert case.variant is not None
    assert case.variant.joint is not None
    assert case.scenario is not None
    return case.variant.joint(case_task(case), case.scenario.prompt)


def _alone(law: Law, expected: Any) -> str:
    """Say how far each row's own law is off."""
    off = []
    for row in (0, 1):
        marginal: dict[Any, Any] = {}
        for sign, pairs in ((1, law.probabilities), (-1, expected)):
            for pair, mass in pairs.items():
                marginal[pair[row]] = marginal.get(pair[row], 0) + sign * mass
        off.append(shown(sum(abs(value) for value in marginal.values()) / 2))
    return f"alone they are off by {off[0]} and {off[1]}"


CHECK = Check(
    name="rows_are_independent",
    summary="rows decided in one call have the product of their targets' laws",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
    examine=examine,
)
