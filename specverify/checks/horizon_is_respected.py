"""The output has exactly the requested number of tokens, unless an end-of-sequence token comes first."""

from __future__ import annotations

from specverify.base.verdict import Evidence
from specverify.checks.check import Check, variants_in
from specverify.checks.outcome_sets import examine_outcomes
from specverify.reference import Task, Tokens


def fault(task: Task, prompt: Tokens, new: Tokens) -> str | None:
    """Describe a wrong number of new tokens ``new``; None if it is right.

    ``task`` has the horizon and the end-of-sequence tokens. ``prompt`` is not examined.
    """
    if len(new) > task.horizon:
        return f"{len(new)} tokens for a horizon of {task.horizon}"
    if len(new) < task.horizon and not any(token in task.eos for token in new):
        return f"{len(new)} tokens and no end-of-sequence token for a horizon of {task.horizon}"
    return None


CHECK = Check(
    name="horizon_is_respected",
    summary="never more tokens than the horizon, and fewer only after an end-of-sequence token",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(
        variants_in(
            lambda scenario: scenario.shape in {"generic", "peaked", "equal"},
            examine_outcomes(fault, "every output has the requested length"),
        ),
    ),
)
