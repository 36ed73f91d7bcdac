"""The joint law of the new tokens is the target's law, over several rounds (2211.17192, Theorem 1)."""

from __future__ import annotations

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import (
    ONLY_SAMPLED,
    Check,
    Conditions,
    ExaminedPart,
    Need,
    by,
    in_all_scenarios,
)
from specverify.checks.compared_laws import bearing_of, compare
from specverify.reference import Claim
from specverify.subjects.subject import EngineProgram, InScenario, Variant


def examine(situation: InScenario | EngineProgram, conditions: Conditions) -> Examination:
    """Compare the law of a decoder in a scenario, or of an engine, with the product of the target's conditionals.

    ``conditions`` limits the enumeration. ``situation`` is the decoder or the engine.
    """
    bearing = bearing_of(situation)
    return compare(bearing, conditions, bearing.target(), "the target's")


CHECK = Check(
    name="law_is_target",
    summary="the joint law of the output is the target's, by enumeration",
    claim=Claim.LOSSLESS,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(Variant, by(examine), ONLY_SAMPLED, (), in_all_scenarios),
        ExaminedPart(
            EngineProgram,
            by(examine),
            ONLY_SAMPLED,
            (Need(lambda _, program: program.target is None, ONLY_SAMPLED),),
        ),
    ),
)
