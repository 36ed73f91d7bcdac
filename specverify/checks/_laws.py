"""Comparing an enumerated law with an expected one: shared by the checks whose property is a law."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, NamedTuple

from reference import Draws
from specverify.checks.check import Conditions, case_law
from specverify.enumeration import estimated_paths, first_outcomes, program_law
from specverify.explain import law_counterexample, program_counterexample, shown
from specverify.law import Law, combined_law, is_rational, rounding_bound, total_variation
from specverify.parallel import in_parallel
from specverify.rounding import FLOAT32, FLOAT64, LARGEST, of_enumeration
from specverify.subjects.subject import Case, EngineProgram
from specverify.verdict import Counterexample, Examination

WORTH_SHARING = 1000
"""Runs below which starting processes, each importing the engine, costs more than it saves."""


class Comparison(NamedTuple):
    """How an enumerated law and an expected one compare."""

    refuted: bool
    unknown: bool
    statement: str
    figures: Mapping[str, Any]
    rational: bool


def compared(law: Law, expected: Mapping[Any, Any], what: str) -> Comparison:
    """Compare a law with ``expected``, which ``what`` names.

    Rationals are equal or not. Floats are equal if less than the enumeration's own rounding is between them; they are
    refuted where the distance is beyond what rounding can do in the floats that were seen. Between the two they hold
    if rounding can do little and the distance is small even for that. A distance that holds is a quarter of its bound.
    """
    distance, bound = total_variation(law, expected), rounding_bound(law)
    figures = {
        "runs": law.runs,
        "draws": law.decisions,
        "tv": float(distance.high),
        "rounding": bound,
        "missing": float(law.missing),
    }
    rational = is_rational(law)
    exactly = 0 if rational else of_enumeration(law.rounding, law.runs)
    if distance.low > bound:
        return Comparison(True, False, f"TV = {shown(distance.low)} from {what}", figures, rational)
    if distance.high <= exactly / 4:
        return Comparison(False, False, f"the law is {what}", {**figures, "rounding": exactly}, rational)
    if law.missing > exactly:
        cut = f"probability {shown(law.missing)} was not enumerated within {law.runs} runs"
        return Comparison(False, True, cut, figures, rational)
    if bound > LARGEST or distance.high > bound / 4:
        return Comparison(False, True, _too_coarse(law, float(distance.high), bound, what), figures, rational)
    return Comparison(False, False, f"the law is {what}", figures, rational)


def _too_coarse(law: Law, distance: float, bound: float, what: str) -> str:
    fine = law._replace(rounding=law.rounding._replace(epsilon=FLOAT64))
    return (
        f"TV = {shown(distance)} from {what} may be rounding: that of this subject, in floats with a spacing of "
        f"{max(law.rounding.epsilon, FLOAT32):.1g} at 1, is up to {bound:.1g}; in float64 it would be "
        f"{rounding_bound(fine, FLOAT64):.1g}"
    )


def compare_program(program: EngineProgram, conditions: Conditions, what: str = "the target's") -> Examination:
    """Enumerate an engine at one setting and compare with the law it promises, which ``what`` names."""
    expected, law = program.law(), enumerated(program, conditions)
    found = compared(law, expected, what)
    if found.refuted:
        with program.open() as run:
            example = program_counterexample(program.name, run, law.probabilities, expected)
        return _examined(found, f"{program.name}: {found.statement}", example)
    return _examined(found, f"{program.name}: {found.statement}" if found.unknown else found.statement)


def _examined(found: Comparison, statement: str, example: Counterexample | None = None) -> Examination:
    return Examination(statement, found.refuted, found.unknown, found.rational, example, found.figures)


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
    found = compared(law, expected, what)
    more = {
        "rounds": law.coverage.rounds,
        "rounds_of_two": law.coverage.rounds_of_two,
        "gamma": max((drafted for drafted, _ in law.coverage.outcomes), default=0),
    }
    example = law_counterexample(case, law.probabilities, expected) if found.refuted else None
    return _examined(found._replace(figures={**found.figures, **more}), found.statement, example)
