"""Check that no emitted token is forbidden by a declared constraint; ``law_is_target`` checks the masked law.

An engine that masks some pmfs and not others, or applies the mask of a rejected draft, emits a token that a grammar, a
list of bad words, a minimum length or a budget forbids after the tokens before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Case, Check, Conditions
from specverify.checks.compared_laws import enumerated
from specverify.checks.explaining.wording import short
from specverify.laws.rounding import NEGLIGIBLE
from specverify.laws.scenarios import Scenario
from specverify.subjects.made_engine import Make, forbidden_by
from specverify.subjects.subject import EngineProgram, Subject


def examine(make: Make, scenarios: tuple[Scenario, ...], program: EngineProgram, conditions: Conditions) -> Examination:
    """Search the possible texts of ``program`` for one that the constraint of the engine ``make`` forbids.

    ``scenarios`` are those of its requests, in order.
    """
    law = enumerated(program, conditions)
    figures = {"runs": law.runs}
    for outcome, mass in law.probabilities.items():
        if mass <= NEGLIGIBLE:
            continue
        texts = program.split(outcome) if program.split else (outcome,)
        for number, (new, scenario) in enumerate(zip(texts, scenarios, strict=False), start=1):
            result = forbidden_by(make, scenario, new)
            if result is None:
                continue
            place, allowed = result
            which = f" of {program.each} {number}" if len(texts) > 1 else ""
            fault = (
                f"new token {place + 1}{which} is {new[place]}, which the constraint forbids after {new[:place]}: it "
                f"allows {', '.join(map(str, allowed)) or 'nothing'}"
            )
            let = (f"setting {program.name}", f"new tokens {new} with probability {short(mass)}")
            example = Counterexample(let, fault, fault=fault)
            return Examination(
                f"{program.name}: {fault}", True, rational=False, counterexample=example, figures=figures
            )
    return Examination("nothing comes out that the constraint forbids", rational=False, figures=figures)


def constraint_check(make: Make, scenarios: Mapping[str, tuple[Scenario, ...]]) -> Check:
    """Return the check of a declared constraint; ``scenarios`` maps a program's name to its requests' scenarios."""

    def cases(subject: Subject) -> Iterator[Case]:
        for program in subject.programs:
            if program.name in scenarios:
                yield Case(subject, program, partial(examine, make, scenarios[program.name], program))

    return Check(
        name="constraint_is_kept",
        summary="no token comes out that the declared constraint forbids",
        claim=None,
        evidence=Evidence.EXACT,
        obstacle=lambda subject: None if subject.programs else "it is no engine",
        cases=cases,
    )
