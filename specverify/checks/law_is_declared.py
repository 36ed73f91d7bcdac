"""A method that is not lossless has exactly the law it declares, and that law is not the target's."""

from __future__ import annotations

from specverify.checks._laws import compare_law
from specverify.checks.check import Check, Conditions, exact_cases
from specverify.law import Law, target_law, total_variation
from specverify.subjects.subject import Case, Subject, case_task
from specverify.verdict import Evidence, Examination


def obstacle(subject: Subject) -> str | None:
    """Only subjects that declare a law have one to compare."""
    return None if any(variant.declared_law for variant in subject.variants) else "it declares no law but the target's"


def examine(case: Case, conditions: Conditions) -> Examination:
    """Compare with the declared law; the figures hold its total variation from the target."""
    assert case.scenario is not None
    assert case.variant is not None
    assert case.variant.declared_law is not None
    task = case_task(case)
    declared = case.variant.declared_law(task, case.scenario.prompt)
    found = compare_law(case, conditions, declared, "the declared one")
    bias = total_variation(Law(declared), target_law(task, case.scenario.prompt)).low
    return found._replace(figures={**found.figures, "bias": float(bias)})


CHECK = Check(
    name="law_is_declared",
    summary="a method with a declared bias has exactly its declared law",
    claim=None,
    evidence=Evidence.EXACT,
    obstacle=obstacle,
    cases=exact_cases(lambda scenario: True),
    examine=examine,
)
