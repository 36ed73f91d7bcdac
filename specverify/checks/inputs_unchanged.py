"""What the caller passed in is afterwards what it was, models, configs, prompt, arrays: it will be used again."""

from __future__ import annotations

from collections.abc import Iterator

from specverify.checks._calls import after_calls, call_cases, examine_calls, needs_calls
from specverify.checks._observed import Run, Seen, examine_runs, needs_watching, watched_cases
from specverify.checks.check import Check, Conditions
from specverify.subjects.subject import Case, EngineProgram, Subject
from specverify.verdict import Evidence, Examination

HOLDS = "the caller's objects are unchanged, but for what is documented to change"
SHAPES = {"generic", "zeros", "point_draft"}


def obstacle(subject: Subject) -> str | None:
    """The subject must be called by us: a verifier, or an engine that can be looked into."""
    return None if needs_calls(subject) is None else needs_watching(subject)


def cases(subject: Subject) -> Iterator[Case]:
    """Return every program that can be looked into, and a few scenarios of a verifier."""
    yield from watched_cases(subject)
    yield from call_cases(lambda scenario: scenario.shape in SHAPES)(subject)


def fault(_: Seen, run: Run, program: EngineProgram) -> str | None:
    """Name what a run changed and no documentation says it would."""
    changed = [name for name in run.seen.changed if name not in program.documented]
    return f"one call changes {' and '.join(changed)}" if changed else None


def examine(case: Case, conditions: Conditions) -> Examination:
    """Look at what was passed in after every run or call."""
    if case.program is not None:
        return examine_runs(fault, HOLDS)(case, conditions)
    return examine_calls(case, after_calls(case).changed, "the arguments are what they were")


CHECK = Check(
    name="inputs_unchanged",
    summary="prompt, weights, configs, and the arrays of a verifier, are the same before and after a call",
    claim=None,
    evidence=Evidence.EQUAL,
    obstacle=obstacle,
    cases=cases,
    examine=examine,
)
