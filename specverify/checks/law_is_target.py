"""The joint law of the new tokens is the target's own, over several rounds (the promise of 2211.17192, Theorem 1)."""

from __future__ import annotations

from collections.abc import Iterator

from reference import Claim
from specverify.checks._laws import compare_law, compare_program
from specverify.checks.check import Check, Conditions, exact_cases, needs_variants
from specverify.law import target_law
from specverify.subjects.subject import Case, Subject, case_task
from specverify.verdict import Evidence, Examination


def obstacle(subject: Subject) -> str | None:
    """The subject must be enumerable, by its own draws or by its library's."""
    return None if any(program.target is None for program in subject.programs) else needs_variants(subject)


def cases(subject: Subject) -> Iterator[Case]:
    """Return every variant in every scenario, and every engine program that declares no other law."""
    yield from exact_cases(lambda scenario: True)(subject)
    for program in subject.programs:
        if program.target is None:
            yield Case(subject, program=program)


def examine(case: Case, conditions: Conditions) -> Examination:
    """Enumerate the decoder and compare with the product of the target's conditionals."""
    if case.program is not None:
        return compare_program(case.program, conditions)
    assert case.scenario is not None
    return compare_law(case, conditions, target_law(case_task(case), case.scenario.prompt), "the target's")


CHECK = Check(
    name="law_is_target",
    summary="the joint law of the output is the target's, by enumeration",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
    examine=examine,
)
