"""An answer stays what it was: it is no buffer that the next call fills.

Callers keep answers: of one row while they decide the next, of one step while they run another. So the answers of many
calls are kept and read again when all calls were made. An answer may be a view of its caller's arrays, as slices are:
that is said, and no fault.
"""

from __future__ import annotations

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.inputs_unchanged import SHAPES
from specverify.checks.verifier_calls import Called, after_calls, call_cases, examine_calls, needs_calls


def examine(called: Called, _: Conditions) -> Examination:
    """Read every answer in a scenario again."""
    after = after_calls(called)
    holds = "every answer is afterwards what it was"
    return examine_calls(
        after, after.stale, f"{holds} until its caller's arrays are overwritten" if after.views else holds
    )


CHECK = Check(
    name="outputs_are_fresh",
    summary="an answer of a verifier is not changed by later calls",
    claim=None,
    evidence=Evidence.EQUAL,
    obstacle=needs_calls,
    cases=call_cases(lambda scenario: scenario.shape in SHAPES, examine),
)
