"""Each logits processor receives, for every row, the tokens that it would receive without drafts."""

from __future__ import annotations

from specverify.base.verdict import Evidence, Examination
from specverify.checks.check import Check, Conditions
from specverify.checks.observed_runs import (
    Observable,
    Run,
    Seen,
    examine_runs,
    seen_in,
    watched,
)
from specverify.subjects.subject import committed_before, drafts_of


def fault(seen: Seen, run: Run, _: Observable) -> str | None:
    """Describe the first row of ``run`` whose processor received wrong tokens; None if there is none.

    A processor must receive the tokens decided before the forward pass, and the drafts before its row. Only calls for
    the target count. ``seen`` has the prompt.
    """
    tokens = seen.prompt + run.ends[0][0]
    for number, (forward, shown) in enumerate(zip(run.seen.forwards, run.seen.rows, strict=True), start=1):
        drafts, committed = drafts_of(forward, seen.prompt), tokens[: committed_before(forward, seen.prompt)]
        for row in range(len(drafts) + 1):
            expected = committed + drafts[:row]
            if row >= len(shown):
                return (
                    f"in forward pass {number} row {row} was not processed: {len(shown)} calls for {len(drafts)} drafts"
                )
            if shown[row] != expected:
                return f"in forward pass {number} row {row} the processor should see {expected}, but sees {shown[row]}"
    return None


_examined = examine_runs(fault, "every row was processed with its own prefix")


def examine(observable: Observable, conditions: Conditions) -> Examination:
    """Search every recorded run of ``observable`` for a row whose processor received wrong tokens.

    The result is unknown if the rows were not recorded. ``conditions`` has the settings of the check.
    """
    if any(len(run.seen.rows) != len(run.seen.forwards) for run in seen_in(observable.watch).runs):
        said = "the inputs of its logits processors are not reported, expected one entry per forward pass"
        return Examination(said, unknown=True, rational=False)
    return _examined(observable, conditions)


CHECK = Check(
    name="processors_see_their_prefix",
    summary="each logits processor gets the committed tokens and the drafts before its row",
    claim=None,
    evidence=Evidence.EXACT,
    examines=(watched("rows", examine),),
)
