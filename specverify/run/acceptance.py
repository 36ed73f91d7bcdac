"""The number of accepted drafts that a black box reports: counted, and tested if its law is given.

Each sequence has one number. Sequences are independent, so for each k the event "at least k drafts accepted" has one
probability, and a confidence sequence bounds this probability at all times. The law of the numbers is tested like the
law of the sequences. An engine that rejects every draft has the right law of sequences; only this test refutes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from specverify.base.verdict import Status, Verdict
from specverify.checks.samplers.sampler_law import (
    LawPlan,
    law_begun,
    law_seen,
    law_status,
    law_verdicts,
    log_evidence,
    plan_law,
)
from specverify.laws.known_law import known_law
from specverify.reference import Claim
from specverify.run.course import Course, going_on, with_course
from specverify.statistics.confidence_sequences import rate_sequence
from specverify.subjects.subject import UnusableSubject


class Acceptance(NamedTuple):
    """The counter of the accepted drafts that a black box reports, and the test of the law of their number.

    ``seen(numbers)`` adds one batch: the number of accepted drafts of each sequence, or None if the black box reports
    none. ``status()`` is the result of the test so far, or None if no law is tested. ``verdicts(function)`` calls
    ``function`` for the verdicts on the samples, and returns them with the counts, and with the verdict of this test.
    """

    seen: Callable[[Sequence[int] | None], None]
    status: Callable[[], Status | None]
    """Returns the status of the test; None if no law is given."""
    verdicts: Callable[[Callable[[], Sequence[Verdict]]], Sequence[Verdict]]
    """``verdicts(others)`` returns the verdicts of ``others()`` with the counts added, and the verdict on the law."""


def acceptance_of(name: str, law: Any, alarm: float, tv: float, most_samples: int) -> Acceptance:
    """Return the counter of accepted drafts of the subject ``name``, with a test of their number if ``law`` is given.

    * ``law``: The pmf of the number of accepted drafts of a sequence, or None.
    * ``alarm``: The false-alarm rate of all tests of the sample; this test gets a quarter of it.
    * ``tv``: The test holds if the total variation from ``law`` is at most ``tv``.
    * ``most_samples``: The largest number of samples.

    Raises ``ValueError`` if ``law`` is not a pmf over the number of accepted drafts.
    """
    if law is None:
        return _counted(name, None, alarm)
    known = known_law(law, "acceptance")
    plan = plan_law(known, alarm=alarm / 4, error=alarm, tv=tv, most_samples=most_samples)
    return _counted(name, plan, alarm)


def _counted(name: str, plan: LawPlan | None, error: float) -> Acceptance:
    found = None if plan is None else law_begun(plan)
    counts, course = np.zeros(1, dtype=np.int64), Course()

    def seen(accepted: Sequence[int] | None) -> None:
        nonlocal found, counts, course
        if plan is not None and accepted is None:
            raise UnusableSubject(
                f"{name} does not report the number of accepted drafts, expected accepted beside tokens"
            )
        if accepted is None:
            return
        new = np.bincount(accepted, minlength=len(counts))
        counts = new + np.pad(counts, (0, len(new) - len(counts)))
        if plan is not None and found is not None:
            found = law_seen(plan, found, [(number,) for number in accepted])
            course = going_on(course, found.samples, partial(log_evidence, plan, found))

    def status() -> Status | None:
        if plan is None or found is None:
            return None
        return law_status(plan, found) if found.samples else Status.UNKNOWN

    def verdicts(others: Callable[[], Sequence[Verdict]]) -> Sequence[Verdict]:
        told = [_with_counts(verdict, counts.tolist(), error) for verdict in others()]
        if plan is None or found is None or not found.samples:
            return told
        _, law = law_verdicts(name, plan, found)
        said = f"the number of accepted drafts: {law.statement}"
        mine = law._replace(check="acceptance_fits_law", statement=said, claim=Claim.OPTIMAL_COUPLING)
        return [*told, *with_course([mine], course)]

    return Acceptance(seen, status, verdicts)


def combine_statuses(one: Callable[[], Status], other: Callable[[], Status | None]) -> Status:
    """Return the combined status of two tests: REFUTED if either is, HOLDS if both hold, else UNKNOWN.

    ``one`` and ``other`` return a status; None from ``other`` is ignored.
    """
    result = {one(), other()} - {None}
    if Status.REFUTED in result:
        return Status.REFUTED
    return Status.HOLDS if result == {Status.HOLDS} else Status.UNKNOWN


def _with_counts(verdict: Verdict, counts: list[int], error: float) -> Verdict:
    """Return ``verdict`` with the counts of accepted drafts in its figures, and with a note about their mean.

    It is unchanged if nothing was sampled, or if its figures have no counts of outcomes. ``counts[k]`` is the number of
    sequences with k accepted drafts, and ``error`` the error probability of the confidence interval in the note.
    """
    samples = sum(counts)
    if "tally" not in verdict.figures or not samples:
        return verdict
    mean = sum(number * count for number, count in enumerate(counts)) / samples
    first = rate_sequence(samples - counts[0], samples, error)
    note = (
        f"{mean:.3f} drafts of a sequence were accepted on average; at least one in {first.lower:.4f} to "
        f"{first.upper:.4f} of them, at all times with error {error:.1g}"
    )
    notes = [*verdict.figures.get("notes", ()), note]
    return verdict._replace(figures={**verdict.figures, "accepted": counts, "notes": notes})
