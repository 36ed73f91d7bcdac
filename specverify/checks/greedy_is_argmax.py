"""On one-hot target rows (temperature 0) the output is the target's greedy text, with certainty."""

from __future__ import annotations

from reference import Claim, greedy_law
from specverify.checks._laws import compare_law
from specverify.checks.check import Check, Conditions, exact_cases, needs_variants
from specverify.subjects.subject import Case, case_task
from specverify.verdict import Evidence, Examination


def examine(case: Case, conditions: Conditions) -> Examination:
    """Compare with the point mass on the greedy continuation."""
    assert case.scenario is not None
    return compare_law(case, conditions, greedy_law(case_task(case), case.scenario.prompt), "greedy decoding's")


CHECK = Check(
    name="greedy_is_argmax",
    summary="at temperature 0 the output is the target's argmax, token by token",
    claim=Claim.GREEDY,
    evidence=Evidence.EXACT,
    obstacle=needs_variants,
    cases=exact_cases(lambda scenario: scenario.greedy or scenario.shape == "point_target"),
    examine=examine,
)
