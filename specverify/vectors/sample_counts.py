"""Compare counts of samples with an exact law by a test whose false-alarm rate is fixed before the first sample."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from specverify.reference import Tokens
from specverify.vectors.judging import rows_by_tokens
from specverify.vectors.vector import Judged, Outcome

ALARM, MISS = 1e-9, 1e-2
"""Probabilities for one vector: that a correct sampler fails, and that a deviation of ``DETECT`` is missed."""
DETECT = 0.05
"""The total variation that a test must be able to detect; with too few samples the grade is undecided."""


def judged_counts(law: Mapping[Tokens, Fraction], rows: Any) -> Judged:
    """Return the grade of ``rows``, counts of independent samples, against the exact ``law`` (tokens -> probability).

    * A text of probability 0 fails, and so do counts that a chi-square test at ``ALARM`` rejects.
    * Other counts pass if the test, with this number of samples, rejects a total variation of ``DETECT`` with
      probability at least 1 - ``MISS``.
    * With fewer samples they are undecided.
    """
    from specverify.statistics.calibration import calibrated_level  # noqa: PLC0415 - scipy, where something is sampled
    from specverify.statistics.goodness_of_fit import (  # noqa: PLC0415 - as above
        detectable_total_variation,
        goodness_of_fit,
        samples_for,
    )

    counts = _counts(rows)
    if counts is None:
        return Judged(Outcome.FAILED, "the counts are no list of different {tokens, count}, whole numbers >= 0")
    if not any(counts.values()):
        return Judged(Outcome.NOT_ANSWERED, "the counts hold no sample")
    masses = {tokens: float(mass) for tokens, mass in law.items()}
    fit, level = goodness_of_fit(counts, masses), calibrated_level(ALARM)
    if fit.unsupported:
        return Judged(Outcome.FAILED, f"the text {list(fit.unsupported[0])} was sampled, and has probability 0")
    if fit.p_value <= level:
        said = f"{fit.samples} samples are at a total variation of {fit.tv_observed:.3g}: p-value {fit.p_value:.1g}"
        return Judged(Outcome.FAILED, said)
    if detectable_total_variation(masses, fit.samples, level, MISS) > DETECT:
        needed = samples_for(masses, DETECT, level, MISS)
        return Judged(Outcome.UNDECIDED, f"{fit.samples} samples are too few, expected {needed} or more")
    return Judged(Outcome.PASSED)


def _counts(rows: Any) -> dict[Tokens, int] | None:
    result = rows_by_tokens(rows, "count")
    fine = result is not None and all(type(count) is int and count >= 0 for count in result.values())
    return result if fine else None
