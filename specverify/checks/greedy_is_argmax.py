"""On one-hot target rows (temperature 0) the output is the target's greedy text, with certainty."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import ONLY_SAMPLED, Check, Conditions, ExaminedPart, by, in_scenarios
from specverify.checks.compared_laws import compare, of_decoder
from specverify.reference import Claim, greedy_law
from specverify.subjects.subject import InScenario, Subject, Variant


def examine(situation: InScenario, conditions: Conditions) -> Examination:
    """Compare the law of the output with the point mass on the target's greedy text.

    ``situation`` is a decoder in a scenario, and ``conditions`` limits the enumeration.
    """
    return compare(of_decoder(situation), conditions, greedy_law(situation.task, situation.prompt), "greedy decoding's")


def _greedy_situations(subject: Subject) -> Iterator[InScenario]:
    """Yield the situations in which the target decodes greedily.

    Its rows are one-hot in the scenario, or are made so by the sampling parameters of the variant.
    """
    for here in in_scenarios()(subject):
        of_scenario = here.scenario.greedy or here.scenario.shape == "point_target"
        if of_scenario or (here.variant.process is not None and _is_one_hot(here)):
            yield here


def _is_one_hot(here: InScenario) -> bool:
    """Return whether the target's rows are one-hot along its greedy text."""
    ((text, _),) = greedy_law(here.task, here.prompt).items()
    rows = (here.task.target(here.prompt + text[:length]) for length in range(len(text)))
    return all(np.count_nonzero(np.asarray(row)) == 1 for row in rows)


CHECK = Check(
    name="greedy_is_argmax",
    summary="at temperature 0 the output is the target's argmax, token by token",
    claim=Claim.GREEDY,
    evidence=Evidence.EXACT,
    examines=(ExaminedPart(Variant, by(examine), ONLY_SAMPLED, (), _greedy_situations),),
)
