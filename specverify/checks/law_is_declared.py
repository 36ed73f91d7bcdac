"""A method that is not lossless has exactly the law it declares; its total variation from p is reported."""

from __future__ import annotations

from collections.abc import Iterator

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart, Need, by, in_all_scenarios
from specverify.checks.compared_laws import bearing_of, compare
from specverify.laws.law import Law, total_variation
from specverify.subjects.subject import EngineProgram, InScenario, Subject, Variant

UNDECLARED = "it declares no law but the target's"


def _declaring(subject: Subject) -> Iterator[InScenario]:
    return (situation for situation in in_all_scenarios(subject) if situation.variant.declared_law is not None)


def examine(situation: InScenario | EngineProgram, conditions: Conditions) -> Examination:
    """Compare the law of a decoder in a scenario, or of an engine, with the law that it declares.

    The figure ``bias`` is the total variation between the declared law and the target's. ``conditions`` limits the
    enumeration. ``situation`` is the decoder or the engine.
    """
    bearing = bearing_of(situation)
    assert bearing.declared is not None
    law = bearing.declared()
    result = compare(bearing._replace(logits=None), conditions, law, "the declared one")
    bias = total_variation(Law(law), bearing.target()).low
    return result._replace(figures={**result.figures, "bias": float(bias)})


CHECK = Check(
    name="law_is_declared",
    summary="a method with a declared bias has exactly its declared law",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(
            Variant,
            by(examine),
            UNDECLARED,
            (Need(lambda _, variant: variant.declared_law, UNDECLARED),),
            _declaring,
        ),
        ExaminedPart(EngineProgram, by(examine), UNDECLARED, (Need(lambda _, program: program.target, UNDECLARED),)),
    ),
)
