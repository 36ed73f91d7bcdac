"""What is kept for the next check of one subject, and forgotten when it is done with.

Laws of thousands of scenarios, and the scenarios that they are kept by, are hundreds of thousands of objects. Whoever
judges hundreds of subjects looks through all of them for each: see ``intercept.outside.look_around``.
"""

from __future__ import annotations

from specverify.checks import check, compared_laws, round_laws, verifier_calls
from specverify.checks.explaining import round_faults

_KEPT = (
    check.law_in,
    check.paths_of_program,
    check.runs_by_round,
    check.paths_of_whole,
    check.paths_of_one_row,
    verifier_calls.after_calls,
    compared_laws.law_of_opened,
    compared_laws.overheard_of,
    round_laws.first_rounds,
    round_faults.rounds_given_drafts,
    round_faults.given_from_state,
)


def forget_laws() -> None:
    """Forget what was worked out for the checks of a subject."""
    for kept in _KEPT:
        kept.cache_clear()
