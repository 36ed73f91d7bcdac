"""The common examination of checks that forbid some outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specverify.base.edges import edge_of
from specverify.base.verdict import Counterexample, Examination
from specverify.checks.check import Conditions, law_in
from specverify.checks.explaining.counterexample_parts import readable
from specverify.checks.explaining.decoder_counterexamples import outcome_counterexample
from specverify.laws.law import Law, is_rational
from specverify.laws.rounding import Rounding
from specverify.reference import Task, Tokens
from specverify.subjects.subject import InScenario

ON_ONE = "a draw falls on it"
"""When a token is emitted whose probability is an edge."""
CauseOf = Callable[[InScenario, Tokens], str]
FaultOf = Callable[[Task, Tokens, Tokens], str | None]
"""``fault(task, prompt, new)`` describes what is wrong with the new tokens, or returns None."""


def examine_outcomes(
    fault: FaultOf,
    held: str,
    forgives: Callable[[Rounding], float] = lambda rounding: 0.0,
    cause: CauseOf = lambda situation, new: "",
    *,
    of_tokens: bool = False,
) -> Callable[[InScenario, Conditions], Examination]:
    """Return an examination that searches the possible outputs for the most probable one with a fault.

    The result is unknown if no fault was found and some outputs were not enumerated.

    Args:
        fault: ``fault(task, prompt, new)`` describes what is wrong with the new tokens, or returns None.
        held: The sentence if no output has a fault.
        forgives: ``forgives(rounding)`` is the probability up to which an output is ignored if probabilities are
            floats.
        cause: ``cause(situation, new)`` returns the sentence about the step that makes the output faulty, or "".
        of_tokens: Whether a fault is one token. If no such token has ``conditions.edge`` or more of the probability,
            given the tokens before it, the fault becomes a note.
    """

    def examine(situation: InScenario, conditions: Conditions) -> Examination:
        law, task, prompt = law_in(situation, conditions.runs), situation.task, situation.prompt
        least = 0 if is_rational(law) else forgives(law.rounding)
        faulty = {new: mass for new, mass in law.probabilities.items() if mass > least and fault(task, prompt, new)}
        figures = {"runs": law.runs, "outcomes": len(law.probabilities), "missing": float(law.missing)}
        worst = max(faulty, key=lambda new: (faulty[new], new), default=())
        chance = _of_first_fault(fault, situation, law, faulty) if of_tokens else 1.0
        if faulty and chance >= conditions.edge:
            statement = f"{fault(task, prompt, worst)} (probability {readable(faulty[worst])})"
            example = _shown(situation, worst, statement, cause) if conditions.explained else None
            return Examination(
                statement, failed=True, rational=is_rational(law), counterexample=example, figures=figures
            )
        if law.missing > 0:
            missing = f"probability {readable(law.missing)} was not enumerated within {law.runs} runs"
            return Examination(missing, unknown=True, rational=is_rational(law), figures=figures, out_of_runs=True)
        if faulty:
            said = f"{situation.scenario.name}: {worst} comes out: {fault(task, prompt, worst)}"
            edges = [edge_of(said, ON_ONE, chance)]
            return Examination(held, rational=is_rational(law), figures={**figures, "edges": edges})
        return Examination(held, rational=is_rational(law), figures=figures)

    return examine


def _of_first_fault(fault: FaultOf, situation: InScenario, law: Law, faulty: Mapping[Tokens, Any]) -> float:
    """Return the largest probability of a first faulty token of the outputs ``faulty``, given the tokens before it.

    ``law`` is the law of all outputs of ``situation``.
    """
    task, prompt, most = situation.task, situation.prompt, 0.0
    for new in faulty:
        length = next(at for at in range(1, len(new) + 1) if at == len(new) or fault(task, prompt, new[:at]))
        begun, before = (
            sum(mass for text, mass in law.probabilities.items() if text[: len(begin)] == begin)
            for begin in (new[:length], new[: length - 1])
        )
        most = max(most, float(begun / before))
    return most


def _shown(situation: InScenario, worst: Tokens, statement: str, cause: CauseOf) -> Counterexample:
    """Return the counterexample of a decoder that emits the faulty output ``worst``.

    ``statement`` describes the fault, and ``cause`` is as in ``examine_outcomes``. ``situation`` is the decoder in its
    scenario.
    """
    example = outcome_counterexample(situation, worst, f"the output {worst} is impossible, but: {statement}")
    return example._replace(fault=cause(situation, worst))
