"""Comparing an enumerated law with an expected one: shared by the checks whose property is a law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from reference import Draws
from specverify.checks.check import Conditions, case_law, vocabulary_of
from specverify.enumeration import estimated_paths, first_outcomes, program_law
from specverify.explain import law_counterexample, program_counterexample, shown
from specverify.law import Law, combined_law, is_rational, rounding_bound, total_variation
from specverify.parallel import in_parallel
from specverify.subjects.subject import Case, EngineProgram
from specverify.verdict import Examination

WORTH_SHARING = 1000
"""Runs below which starting processes, each importing the engine, costs more than it saves."""


def compare_program(program: EngineProgram, conditions: Conditions, what: str = "the target's") -> Examination:
    """Enumerate an engine at one setting and compare with the law it promises, which ``what`` names."""
    expected, law = program.law(), enumerated(program, conditions)
    distance = total_variation(law, expected)
    bound = rounding_bound(law, program.vocabulary, program.epsilon)
    figures = {"runs": law.runs, "tv": float(distance.high), "rounding": bound, "missing": float(law.missing)}
    if distance.low > bound:
        with program.open() as run:
            example = program_counterexample(program.name, run, law.probabilities, expected)
        statement = f"{program.name}: TV = {shown(distance.low)} from {what}"
        return Examination(statement, failed=True, rational=False, counterexample=example, figures=figures)
    if distance.high > bound:
        cut = f"{program.name}: probability {shown(law.missing)} was not enumerated within {law.runs} runs"
        return Examination(cut, unknown=True, rational=False, figures=figures)
    return Examination(f"the law is {what}", rational=False, figures=figures)


def enumerated(program: EngineProgram, conditions: Conditions) -> Law:
    """Return the law of an engine at one setting; several checks read the same one."""
    return _enumerated(program, conditions.runs, conditions.jobs)


@lru_cache(maxsize=16)
def _enumerated(program: EngineProgram, runs: int, jobs: int) -> Law:
    with program.open() as run:
        return _shared_law(program, run, Conditions(runs, jobs=jobs))


def _shared_law(program: EngineProgram, run: Callable[[Draws], Any], conditions: Conditions) -> Law:
    """Enumerate here, or in several processes if that is worth starting them."""
    if conditions.jobs == 1 or estimated_paths(run) < WORTH_SHARING:
        return program_law(run, conditions.runs)
    shares = first_outcomes(run, depth=3)
    dealt = [shares[start :: 4 * conditions.jobs] for start in range(4 * conditions.jobs)]
    works = [partial(_share_of_law, program, part, conditions.runs) for part in dealt]
    return combined_law([law for laws in in_parallel(works, conditions.jobs) for law in laws])


def _share_of_law(program: EngineProgram, shares: list[tuple[int, ...]], runs: int) -> list[Law]:
    with program.open() as run:
        return [program_law(run, runs, share) for share in shares]


def compare_law(case: Case, conditions: Conditions, expected: Mapping[Any, Any], what: str) -> Examination:
    """Compare the law of a case with ``expected``, which ``what`` names: equal, refuted, or unknown where cut off."""
    law = case_law(case, conditions.runs)
    distance = total_variation(law, expected)
    bound = rounding_bound(law, vocabulary_of(case), case.subject.epsilon)
    figures = {
        "runs": law.runs,
        "rounds": law.coverage.rounds,
        "rounds_of_two": law.coverage.rounds_of_two,
        "gamma": max((drafted for drafted, _ in law.coverage.outcomes), default=0),
        "tv": float(distance.high),
        "rounding": bound,
        "missing": float(law.missing),
    }
    rational = is_rational(law)
    if distance.low > bound:
        return Examination(
            f"TV = {shown(distance.low)} from {what}",
            failed=True,
            rational=rational,
            counterexample=law_counterexample(case, law.probabilities, expected),
            figures=figures,
        )
    if distance.high > bound:
        return Examination(
            f"probability {shown(law.missing)} was not enumerated within {law.runs} runs",
            unknown=True,
            rational=rational,
            figures=figures,
        )
    return Examination(f"the law is {what}", rational=rational, figures=figures)
