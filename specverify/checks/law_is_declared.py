"""A method that is not lossless has exactly the law it declares, and that law is not the target's."""

from __future__ import annotations

from collections.abc import Iterator

from specverify.checks._laws import compare_law, compare_program
from specverify.checks.check import Check, Conditions, exact_cases
from specverify.law import Law, target_law, total_variation
from specverify.subjects.subject import Case, EngineProgram, Subject, case_task
from specverify.verdict import Evidence, Examination


def obstacle(subject: Subject) -> str | None:
    """Only subjects that declare a law have one to compare."""
    declared = any(variant.declared_law for variant in subject.variants) or any(map(_declares, subject.programs))
    return None if declared else "it declares no law but the target's"


def cases(subject: Subject) -> Iterator[Case]:
    """Return every variant in every scenario, and every engine program that declares a law."""
    yield from exact_cases(lambda scenario: True)(subject)
    for program in subject.programs:
        if _declares(program):
            yield Case(subject, program=program)


def examine(case: Case, conditions: Conditions) -> Examination:
    """Compare with the declared law; the figures hold its total variation from the target."""
    if case.program is not None:
        return _of_engine(case.program, conditions)
    assert case.scenario is not None
    assert case.variant is not None
    assert case.variant.declared_law is not None
    task = case_task(case)
    declared = case.variant.declared_law(task, case.scenario.prompt)
    found = compare_law(case, conditions, declared, "the declared one")
    bias = total_variation(Law(declared), target_law(task, case.scenario.prompt)).low
    return found._replace(figures={**found.figures, "bias": float(bias)})


def _declares(program: EngineProgram) -> bool:
    return program.target is not None


def _of_engine(program: EngineProgram, conditions: Conditions) -> Examination:
    assert program.target is not None
    found = compare_program(program, conditions, "the declared one")
    bias = total_variation(Law(program.law()), program.target()).low
    return found._replace(figures={**found.figures, "bias": float(bias)})


CHECK = Check(
    name="law_is_declared",
    summary="a method with a declared bias has exactly its declared law",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=cases,
    examine=examine,
)
