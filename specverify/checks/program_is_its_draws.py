"""The subject is a function of its draws: answered alike, it does the same. Without this no law can be computed."""

from __future__ import annotations

from itertools import islice

from specverify.checks.check import Check, Conditions, exact_cases, needs_variants
from specverify.draws import NotAFunctionOfItsDraws, Replayed, Tape
from specverify.enumeration import paths, whole_run
from specverify.explain import describe_case
from specverify.subjects.subject import Case, case_decoder
from specverify.verdict import Counterexample, Evidence, Examination

PATHS = 40
TAPES = 4


def examine(case: Case, conditions: Conditions) -> Examination:
    """Run paths again by their recorded choices, and decoders rebuilt from scratch on the same tape."""
    assert case.scenario is not None  # noqa: S101 - exact cases have a scenario
    prompt = case.scenario.prompt
    program = whole_run(case_decoder(case), prompt)
    try:
        for path in islice(paths(program), PATHS):
            again = program(Replayed(path.choices))
            if again != path.outcome:
                raise NotAFunctionOfItsDraws(
                    f"the choices {path.choices} gave {path.outcome} and on replay {again}, "
                    "although every draw was answered alike"
                )
        for seed in range(conditions.seed, conditions.seed + TAPES):
            first, second = (whole_run(case_decoder(case), prompt)(Tape(seed)) for _ in range(2))
            if first != second:
                raise NotAFunctionOfItsDraws(f"two runs on one tape of uniforms gave {first} and {second}")
    except NotAFunctionOfItsDraws as fault:
        return Examination(
            "it is not a function of its draws",
            failed=True,
            rational=case.subject.rational,
            counterexample=Counterexample(let=(describe_case(case),), then=str(fault)),
        )
    return Examination("the same draws give the same output", rational=case.subject.rational)


CHECK = Check(
    name="program_is_its_draws",
    summary="answered alike, the program makes the same draws and emits the same tokens",
    claim=None,
    evidence=Evidence.EQUAL,
    obstacle=needs_variants,
    cases=exact_cases(lambda scenario: scenario.horizon <= 3),
    examine=examine,
)
