"""No token follows the first end-of-sequence token, at any position of an accepted block."""

from __future__ import annotations

from specverify.base.verdict import Evidence
from specverify.checks.check import ONLY_SAMPLED, Check, ExaminedPart, Need, by, in_scenarios
from specverify.checks.outcome_sets import examine_outcomes
from specverify.reference import Task, Tokens
from specverify.subjects.subject import Variant


def fault(task: Task, prompt: Tokens, new: Tokens) -> str | None:
    """Describe the first end-of-sequence token of ``task`` in ``new`` that other tokens follow; None if there is none.

    ``prompt`` is not examined.
    """
    for position, token in enumerate(new[:-1]):
        if token in task.eos:
            return f"{len(new) - position - 1} more after the end-of-sequence token {token} at position {position}"
    return None


CHECK = Check(
    name="eos_is_final",
    summary="nothing follows the first end-of-sequence token",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(
        ExaminedPart(
            Variant,
            by(examine_outcomes(fault, "nothing follows an end-of-sequence token")),
            ONLY_SAMPLED,
            (Need(lambda subject, _: subject.stops_at_eos, "it takes no end-of-sequence tokens"),),
            in_scenarios(lambda scenario: bool(scenario.eos)),
        ),
    ),
)
