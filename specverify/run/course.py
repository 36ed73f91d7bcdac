"""The course of an e-value over the number of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from specverify.base.verdict import Verdict

APART = 1.05
"""A point is stored when the number of samples has grown by this factor; a million samples give about 200 points."""


class Course(NamedTuple):
    """How an e-value changes while samples are drawn: points (number of samples, log10 of the e-value)."""

    points: tuple[tuple[int, float], ...] = ()


def going_on(course: Course, samples: int, evidence: Callable[[], float]) -> Course:
    """Return ``course``, the points of an e-value over the number of samples, with a further point at ``samples``.

    It is unchanged if ``samples`` is close to its last point. ``evidence()`` returns the natural logarithm of the
    e-value after this number of samples.
    """
    if course.points and samples < APART * course.points[-1][0]:
        return course
    return Course((*course.points, (samples, evidence() / math.log(10))))


def with_course(verdicts: Sequence[Verdict], course: Course) -> Sequence[Verdict]:
    """Return the verdicts on a sample, with ``course``, the points of the e-value over the samples, in their figures.

    It is added to each verdict that has an e-value but no course yet. Its last point is set to the e-value of the
    verdict.
    """
    return [
        verdict._replace(figures={**verdict.figures, "course": _ended(course, verdict)})
        if "log10_e" in verdict.figures and "course" not in verdict.figures
        else verdict
        for verdict in verdicts
    ]


def _ended(course: Course, verdict: Verdict) -> list[tuple[int, float]]:
    last = int(verdict.figures["samples"]), float(verdict.figures["log10_e"])
    return [point for point in course.points if point[0] < last[0]] + [last]
