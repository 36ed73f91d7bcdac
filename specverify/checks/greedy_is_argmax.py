"""On one-hot target rows (temperature 0) the output is the target's greedy text, with certainty."""

from __future__ import annotations

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions, variants_in
from specverify.checks.compared_laws import compare, of_decoder
from specverify.reference import Claim, greedy_law
from specverify.subjects.subject import InScenario


def examine(situation: InScenario, conditions: Conditions) -> Examination:
    """Compare the law of the output with the point mass on the target's greedy text.

    ``situation`` is a decoder in a scenario, and ``conditions`` limits the enumeration.
    """
    return compare(of_decoder(situation), conditions, greedy_law(situation.task, situation.prompt), "greedy decoding's")


CHECK = Check(
    name="greedy_is_argmax",
    summary="at temperature 0 the output is the target's argmax, token by token",
    claim=Claim.GREEDY,
    evidence=Evidence.EXACT,
    examines=(variants_in(lambda scenario: scenario.greedy or scenario.shape == "point_target", examine),),
)
