"""Clear the caches that the checks of one subject share, after the subject is done.

The laws of thousands of scenarios are hundreds of thousands of objects, with the scenarios as keys. Without clearing,
``intercept.cpython.sandbox.look_around``, which searches all objects of the process, would visit them again for each of
hundreds of subjects.
"""

from __future__ import annotations

from specverify.checks import check, compared_laws, round_laws, verifier_calls
from specverify.checks.explaining import changed_rows, given_drafts, round_faults

_KEPT = (
    check.law_in,
    check.paths_of_program,
    check.runs_by_round,
    check.paths_of_whole,
    check.paths_of_one_row,
    verifier_calls.after_calls,
    compared_laws.law_of_opened,
    compared_laws.has_far_more_paths,
    compared_laws.no_reuse_of,
    round_laws.first_rounds,
    given_drafts.rounds_given_drafts,
    given_drafts.given_from_state,
    given_drafts.rounds_by_labels,
    round_faults.fault_of_labelled_blocks,
    changed_rows.changes_of,
    changed_rows.only_change,
)

_LARGE = (compared_laws.paths_of_opened,)
"""Caches of few results, each of which is large."""


def forget_laws() -> None:
    """Clear the caches in which checks keep the laws of the current subject."""
    for kept in (*_KEPT, *_LARGE):
        kept.cache_clear()
