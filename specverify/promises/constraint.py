"""Check that no emitted token is forbidden by a declared constraint; ``law_is_target`` checks the masked law.

A constraint states which tokens are forbidden after a text: a grammar, a list of bad words, a minimum length, a budget.
An engine breaks it if it masks some pmfs and not others, or if it applies the mask of a rejected draft. All texts of
the enumerated scenarios are examined. Further texts are sampled in the scenarios ``SAMPLED``, with chosen seeds. They
have several rounds, because some engines apply a mask one token late, and only after a round that emits several tokens,
keep the state of a rejected draft of a long round, or lose the mask in a long text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from specverify.base.verdict import Counterexample, Evidence, Examination, Status, Verdict
from specverify.checks.check import NO_ENGINE, Check, Conditions, ExaminedPart, by
from specverify.checks.compared_laws import enumerated
from specverify.checks.explaining.wording import short
from specverify.laws.rounding import NEGLIGIBLE
from specverify.laws.scenarios import Scenario
from specverify.promises.pairs import MISS, PAIRS
from specverify.reference import Tokens
from specverify.subjects.allowed_tokens import allowed_after, first_forbidden
from specverify.subjects.engine_factories import widened
from specverify.subjects.engine_laws import forbidden_by
from specverify.subjects.engine_making import Make, made_in
from specverify.subjects.paired import OTHER_STATE, pairing_in
from specverify.subjects.sampler import Sampler, drawn
from specverify.subjects.subject import EngineProgram, KernelSetting, Subject, UnusableSubject

CHECK: Final = "constraint_is_kept"
SAMPLES: Final = 2000
"""Texts of a black box that are read."""
SAMPLED: Final = tuple(Scenario("generic", 3, (0, 1, 0), horizon, seed=7) for horizon in (10, 32))
"""Scenarios of several rounds; every token of every row has positive probability."""


def examine(make: Make, scenarios: tuple[Scenario, ...], program: EngineProgram, conditions: Conditions) -> Examination:
    """Search the possible texts of ``program`` for one that the constraint of the engine ``make`` forbids.

    ``scenarios`` are the scenarios of the program's requests, in order. ``conditions`` limits the enumeration of the
    texts.
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
            fault = _fault(new, *result, f" of {program.each} {number}" if len(texts) > 1 else "")
            let = (f"setting {program.name}", f"new tokens {new} with probability {short(mass)}")
            example = Counterexample(let, fault, fault=fault)
            return Examination(
                f"{program.name}: {fault}", True, rational=False, counterexample=example, figures=figures
            )
    return Examination("nothing comes out that the constraint forbids", rational=False, figures=figures)


def examine_runs(make: Make, conditions: Conditions) -> Examination:
    """Search sampled texts of the engine ``make`` in ``SAMPLED`` for a token that its constraint forbids.

    The seed in ``conditions`` selects the texts.
    """
    found = list[Examination]()
    for scenario in SAMPLED:
        found.append(_examine_texts(make, widened(make, scenario), conditions))
        if found[-1].failed:
            return found[-1]
    return found[-1]._replace(figures={"runs": sum(each.figures["runs"] for each in found)})


def _examine_texts(make: Make, scenario: Scenario, conditions: Conditions) -> Examination:
    """Search sampled texts in ``scenario``; the parameters and the result are those of ``examine_runs``.

    A text is left out if the constraint allows no token at one of its positions, or if the engine raises: it may be
    right, and have no token left.
    """
    pairing, allowed = pairing_in(make, scenario), made_in(make, scenario).allowed
    assert allowed is not None
    served, first, read = pairing.make(), 1 + 7919 * conditions.seed, 0
    for seed in range(first, first + PAIRS):
        try:
            (new,) = served.texts((scenario.prompt,), (seed,), OTHER_STATE + seed)
        except UnusableSubject:
            raise
        except Exception:  # noqa: BLE001 - whatever the engine raises where no token is left
            served = pairing.make()
            continue
        if any(not any(weight > 0 for weight in allowed_after(allowed, new[:at])) for at in range(len(new))):
            continue
        read += 1
        result = first_forbidden(allowed, new)
        if result is not None:
            fault = _fault(new, *result)
            example = Counterexample((f"setting {scenario.name}, seed {seed}", f"new tokens {new}"), fault, fault=fault)
            return Examination(f"{scenario.name}: {fault}", True, rational=False, counterexample=example)
    return Examination("no sampled text has a forbidden token", rational=False, figures={"runs": read})


def _fault(new: Tokens, place: int, allowed: Tokens, which: str = "") -> str:
    return (
        f"new token {place + 1}{which} is {new[place]}, which the constraint forbids after {new[:place]}: it "
        f"allows {', '.join(map(str, allowed)) or 'nothing'}"
    )


def judge_constraint(sampler: Sampler, allowed: Callable[[Tokens], Any], seeds: Iterator[int], largest: int) -> Verdict:
    """Return the verdict on the constraint of a black box: no sampled text has a token that ``allowed`` forbids.

    ``allowed(new)`` is the mask of the tokens that may follow the tokens ``new``. ``seeds`` are the seeds of the calls
    of ``sampler``, and ``largest`` is the largest number of rows of a call.
    """
    left = SAMPLES
    while left:
        number = min(left, largest)
        left -= number
        seed = next(seeds)
        for row, new in enumerate(drawn(sampler, seed, number), start=1):
            result = first_forbidden(allowed, new)
            if result is not None:
                fault = _fault(new, *result)
                example = Counterexample((f"row {row} of seed {seed}, n={number}: {new}",), fault, fault=fault)
                return Verdict(sampler.name, CHECK, Status.REFUTED, fault, None, Evidence.EQUAL, example)
    share = -math.log(MISS) / SAMPLES
    said = f"no sampled text has a token that the constraint forbids: a share of {share:.1%} would have been seen"
    figures = {"samples": SAMPLES}
    return Verdict(sampler.name, CHECK, Status.HOLDS, said, evidence=Evidence.STATISTICAL, figures=figures)


def constraint_check(make: Make, scenarios: Mapping[str, tuple[Scenario, ...]]) -> Check:
    """Return the check of the constraint that the engine ``make`` declares.

    ``scenarios`` maps the name of each program to the scenarios of its requests.
    """

    def long_runs(_: Subject) -> Iterator[KernelSetting]:
        yield KernelSetting("sampled texts")

    def of_runs(_: KernelSetting, conditions: Conditions) -> Examination:
        return examine_runs(make, conditions)

    def of_program(program: EngineProgram, conditions: Conditions) -> Examination:
        return examine(make, scenarios[program.name], program, conditions)

    def with_scenarios(subject: Subject) -> Iterator[EngineProgram]:
        return (program for program in subject.programs if program.name in scenarios)

    return Check(
        name=CHECK,
        summary="no token comes out that the declared constraint forbids",
        claim=None,
        evidence=Evidence.EXACT,
        examines=(
            ExaminedPart(EngineProgram, by(of_runs), NO_ENGINE, (), long_runs),
            ExaminedPart(EngineProgram, by(of_program), NO_ENGINE, (), with_scenarios),
        ),
    )
