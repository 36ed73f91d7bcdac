"""What the caller passed in, models, configs and prompt, is afterwards what it was: it will be used again."""

from __future__ import annotations

from specverify.checks._observed import Run, Seen, examine_runs, needs_watching, watched_cases
from specverify.checks.check import Check
from specverify.subjects.subject import EngineProgram
from specverify.verdict import Evidence


def fault(_: Seen, run: Run, program: EngineProgram) -> str | None:
    """Name what a run changed and no documentation says it would."""
    changed = [name for name in run.seen.changed if name not in program.documented]
    return f"one call changes {' and '.join(changed)}" if changed else None


CHECK = Check(
    name="inputs_unchanged",
    summary="prompt, weights, configs and generation configs are the same before and after a call",
    claim=None,
    evidence=Evidence.EQUAL,
    obstacle=needs_watching,
    cases=watched_cases,
    examine=examine_runs(fault, "the caller's objects are unchanged, but for what is documented to change"),
)
