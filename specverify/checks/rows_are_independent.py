"""Rows decided in one call are independent, and each has its target's law.

The joint law of two rows, also of distant ones, of five, and of four in two calls is compared with the product of their
targets' laws. A uniform used for two rows leaves the law of each row right but makes the rows agree too often: only the
joint law shows this. Rows that are swapped, or decided by each other's pmfs, fail here too. Batches of three certain
rows show every pair of numbers of drafts and of accepted drafts. The target continues each row to a fixed length, so
that rows of several lengths have one law.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import (
    BeyondReach,
    Check,
    Conditions,
    ExaminedPart,
    Need,
    by,
    in_deep_scenarios,
    in_scenarios,
)
from specverify.checks.compared_laws import Probabilities, compare, of_engine
from specverify.checks.explaining.counterexample_parts import described, readable
from specverify.laws.deep_scenarios import CROWDED, PAIRED
from specverify.laws.enumeration import EnumerationTooLarge
from specverify.laws.law import Law
from specverify.laws.scenarios import Scenario
from specverify.reference import Claim
from specverify.subjects.subject import EngineProgram, InScenario, Subject, Variant

ONE_ROW = "it decides one row at a time"
MOST_PATHS = 700
"""Pairs of rows with more paths than this are skipped; the numbers of paths of two rows multiply."""


def _two_rounds_long(scenario: Scenario) -> bool:
    return scenario.horizon == 3 and not scenario.greedy and (scenario.vocabulary > 2 or scenario.prompt == (0,))


def _rows_of_calls(subject: Subject) -> Iterator[InScenario]:
    """Yield the variants of ``subject`` that verify several rows in one call: whole batches, and pairs in scenarios."""
    for variant in subject.variants:
        if variant.batches:
            label = f"{variant.label.partition(',')[0]}, whole batches"
            yield InScenario(variant._replace(label=label, joint=None), CROWDED, subject.rational)
    crowded = (situation for situation in in_deep_scenarios(subject) if situation.scenario in {CROWDED, PAIRED})
    for situation in chain(crowded, in_scenarios(_two_rounds_long)(subject)):
        if situation.variant.joint is not None:
            yield situation


def examine(situation: InScenario, conditions: Conditions) -> Examination:
    """Compare the joint law of the rows of one call with the product of their targets' laws.

    ``situation`` is a verifier of batches in a scenario, and ``conditions`` limits the enumeration. Raises
    ``BeyondReach`` for a pair of rows with more than ``MOST_PATHS`` paths.
    """
    variant = situation.variant
    if variant.joint is not None:
        few = conditions._replace(complete_within=MOST_PATHS)
        try:
            return _examine(variant.joint(situation.task, situation.prompt), situation, few)
        except EnumerationTooLarge as reason:
            raise BeyondReach(str(reason)) from reason
    results = []
    for program in variant.batches() if variant.batches else ():
        results.append(_examine(program, situation, conditions))
        if results[-1].failed or results[-1].unknown:
            return results[-1]
    runs = sum(result.figures["runs"] for result in results)
    return results[-1]._replace(figures={**results[-1].figures, "runs": runs})


def _examine(program: EngineProgram, situation: InScenario, conditions: Conditions) -> Examination:
    """Compare the joint law of the rows that ``program`` decides with the product of their targets' laws.

    ``situation`` is the verifier of batches in its scenario, and ``conditions`` limits the enumeration.
    """
    rows, expected, alone = of_engine(program), program.law(), conditions._replace(jobs=1)  # too few paths to share

    def explain(law: Probabilities, expected: Probabilities) -> Counterexample:
        example = rows.explain(law, expected)
        where = described(program) if situation.variant.joint is None else described(situation)
        return example._replace(let=(where, *example.let))

    unnamed = rows._replace(name="", explain=explain, covered=lambda _: {})  # no engine, of which it tells more
    result = compare(unnamed, alone, expected, "the product of the rows' laws")
    statement = "rows have the product of their targets' laws"
    if result.failed:
        statement = f"{result.statement}; {_off(rows.law(alone), expected)}"
    return result._replace(statement=result.statement if result.unknown else statement)


def _off(law: Law, expected: Probabilities) -> str:
    """Return a clause that states, for each row of the batch, the total variation of its law from the expected law."""
    off = []
    for row in range(len(next(iter(expected)))):
        marginal: dict[Any, Any] = {}
        for sign, pairs in ((1, law.probabilities), (-1, expected)):
            for pair, mass in pairs.items():
                marginal[pair[row]] = marginal.get(pair[row], 0) + sign * mass
        off.append(readable(sum(abs(value) for value in marginal.values()) / 2))
    return f"alone they are off by {', '.join(off[:-1])} and {off[-1]}"


CHECK = Check(
    name="rows_are_independent",
    summary="rows decided in one call have the product of their targets' laws",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(
            Variant,
            by(examine),
            ONE_ROW,
            (Need(lambda _, variant: variant.joint, ONE_ROW),),
            _rows_of_calls,
        ),
    ),
)
