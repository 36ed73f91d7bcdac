"""The subject is a function of its draws: answered alike, it does the same. Without this no law can be computed."""

from __future__ import annotations

from itertools import islice

from reference import Tokens
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
    assert case.scenario is not None
    try:
        fault = _difference(case, case.scenario.prompt, conditions.seed)
    except NotAFunctionOfItsDraws as found:
        fault = str(found)
    if fault is None:
        return Examination("the same draws give the same output", rational=case.subject.rational)
    return Examination(
        "it is not a function of its draws",
        failed=True,
        rational=case.subject.rational,
        counterexample=Counterexample(let=(describe_case(case),), then=fault),
    )


def _difference(case: Case, prompt: Tokens, seed: int) -> str | None:
    program = whole_run(case_decoder(case), prompt)
    for path in islice(paths(program), PATHS):
        again = program(Replayed(path.choices))
        if again != path.outcome:
            return f"the choices {path.choices} gave {path.outcome} and on replay {again}"
    for tape in range(seed, seed + TAPES):
        first, second = (whole_run(case_decoder(case), prompt)(Tape(tape)) for _ in range(2))
        if first != second:
            return f"two runs on one tape of uniforms gave {first} and {second}"
    return None


CHECK = Check(
    name="program_is_its_draws",
    summary="answered alike, the program makes the same draws and emits the same tokens",
    claim=None,
    evidence=Evidence.EQUAL,
    obstacle=needs_variants,
    cases=exact_cases(lambda scenario: scenario.horizon <= 3),
    examine=examine,
)
