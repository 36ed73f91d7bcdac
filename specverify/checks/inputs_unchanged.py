"""The caller's models, configs, prompt and arrays are unchanged after a call, because callers reuse them."""

from __future__ import annotations

from collections.abc import Iterator

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Case, Check, Conditions
from specverify.checks.observed_runs import Observable, Run, Seen, examine_runs, needs_told, watched_cases
from specverify.checks.verifier_calls import CalledVerifier, after_calls, call_cases, examine_calls, needs_calls
from specverify.subjects.subject import EngineProgram, Subject

HOLDS = "the caller's objects are unchanged, but for what is documented to change"
SHAPES = {"generic", "zeros", "point_draft"}


def obstacle(subject: Subject) -> str | None:
    """Return why the check does not apply, or None: it needs a verifier, or an engine whose changes are recorded."""
    return None if needs_calls(subject) is None else needs_told("changed")(subject)


def cases(subject: Subject) -> Iterator[Case]:
    """Yield every observed engine program, and a verifier in a few scenarios, as cases."""
    yield from watched_cases("changed", examine_runs(fault, HOLDS))(subject)
    yield from call_cases(lambda scenario: scenario.shape in SHAPES, examine)(subject)


def undocumented(run: Run, program: EngineProgram) -> tuple[str, ...]:
    """Return the names of the objects that a run changes although no documentation announces it."""
    return tuple(name for name in run.seen.changed if name not in program.documented)


def fault(_: Seen, run: Run, observable: Observable) -> str | None:
    """Describe the objects that a run changes although no documentation announces it; None if there are none."""
    changed = undocumented(run, observable.program)
    return f"one call changes {' and '.join(changed)}" if changed else None


def examine(called: CalledVerifier, _: Conditions) -> Examination:
    """Compare the arguments of every call of a verifier with their values before it."""
    after = after_calls(called)
    return examine_calls(after, after.changed, "the arguments are what they were")


CHECK = Check(
    name="inputs_unchanged",
    summary="prompt, weights, configs, and the arrays of a verifier, are the same before and after a call",
    claim=None,
    evidence=Evidence.EQUAL,
    obstacle=obstacle,
    cases=cases,
)
