"""The caller's models, configs, prompt and arrays are unchanged after a call, because callers reuse them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specverify.base.verdict import Counterexample, Evidence, Examination
from specverify.checks.check import Check, Conditions, ExaminedPart, by
from specverify.checks.observed_runs import NOT_OBSERVED, Observable, Run, Seen, examine_runs, watched
from specverify.checks.verifier_calls import CalledVerifier, after_calls, called_in, examine_calls
from specverify.subjects.subject import EngineProgram, KeptObjects, KeptRequests

HOLDS = "the caller's objects are unchanged, except those documented to change"
SHAPES = {"generic", "zeros", "point_draft"}


def undocumented(run: Run, program: EngineProgram) -> tuple[str, ...]:
    """Return the names of the objects that a run changes without documentation.

    ``program`` lists the documented changes.
    """
    return tuple(name for name in run.seen.changed if name not in program.documented)


def fault(_: Seen, run: Run, observable: Observable) -> str | None:
    """Describe the objects that a run changes without documentation; None if there are none.

    The program of ``observable`` lists the documented changes.
    """
    changed = undocumented(run, observable.program)
    return f"one call changes {' and '.join(changed)}" if changed else None


def examine(called: CalledVerifier, _: Conditions) -> Examination:
    """Compare the arguments of the verifier ``called`` before and after its calls; a change refutes."""
    after = after_calls(called)
    return examine_calls(after, after.changed, "the arguments are what they were")


def kept_by_caller(changed: Callable[[KeptObjects], Sequence[str]], holds: str) -> ExaminedPart:
    """Return the part of a check that serves requests to an engine and keeps the objects of the caller.

    ``changed`` selects the descriptions of changed objects; ``holds`` is the sentence if there are none.
    """

    def examined(kept: KeptRequests, _: Conditions) -> Examination:
        objects = kept.serve()
        figures, found = {"runs": objects.calls}, changed(objects)
        if not found:
            return Examination(holds, rational=False, figures=figures)
        example = Counterexample((f"setting {kept.name}",), found[0])
        return Examination(found[0], failed=True, rational=False, counterexample=example, figures=figures)

    return ExaminedPart(KeptRequests, by(examined), NOT_OBSERVED)


CHECK = Check(
    name="inputs_unchanged",
    summary="prompt, weights, configs, and the arrays of a verifier, are the same before and after a call",
    claim=None,
    evidence=Evidence.EQUAL,
    examines=(
        kept_by_caller(lambda kept: kept.prompts, "the prompts are what they were"),
        watched("changed", examine_runs(fault, HOLDS)),
        called_in(lambda scenario: scenario.shape in SHAPES, examine, NOT_OBSERVED),
    ),
)
