"""The result of a call stays unchanged: later calls do not write to the same buffer.

Callers keep results: of one row while the next is decided, of one step or request while another runs. So the results of
many calls are kept and compared after the last call. A result of a verifier that is a view of its caller's arrays, as
slices are, is no fault but a note.
"""

from __future__ import annotations

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.inputs_unchanged import SHAPES, kept_by_caller
from specverify.checks.verifier_calls import CalledVerifier, after_calls, called_in, examine_calls


def examine(called: CalledVerifier, _: Conditions) -> Examination:
    """Compare each result of the verifier ``called`` again after the last call; a change refutes."""
    after = after_calls(called)
    holds = "every answer is afterwards what it was"
    return examine_calls(
        after, after.stale, f"{holds} until its caller's arrays are overwritten" if after.views else holds
    )


CHECK = Check(
    name="outputs_are_fresh",
    summary="an answer is not changed by later calls",
    claim=None,
    evidence=Evidence.EQUAL,
    examines=(
        kept_by_caller(lambda kept: kept.answers, "every answer is afterwards what it was"),
        called_in(lambda scenario: scenario.shape in SHAPES, examine),
    ),
)
