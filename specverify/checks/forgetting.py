"""What is kept for the next check of one subject, and forgotten when it is done with.

Laws of thousands of scenarios, and the scenarios that they are kept by, are hundreds of thousands of objects. Whoever
judges hundreds of subjects looks through all of them for each: see ``intercept.outside.look_around``.
"""

from __future__ import annotations

from specverify.checks import _calls, _laws, _round_faults, _rounds, check

_KEPT = (
    check.law_in,
    check.paths_of_program,
    check.runs_by_round,
    check.paths_of_whole,
    check.paths_of_one_row,
    _calls.after_calls,
    _laws.law_of_opened,
    _laws.overheard_of,
    _rounds.first_rounds,
    _round_faults.rounds_given_drafts,
    _round_faults.given_from_state,
)


def forget_laws() -> None:
    """Forget what was worked out for the checks of a subject."""
    for kept in _KEPT:
        kept.cache_clear()
