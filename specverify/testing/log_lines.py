"""Progress of a check function as lines of the logger ``specverify``.

pytest shows them with ``--log-cli-level=INFO``. A line names the subject, the check, how many cases were examined and
which checks have refuted the subject so far.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from time import monotonic  # by name: foreign code may replace the functions of ``time``

from specverify.base.verdict import Status, Verdict
from specverify.run.verify import CheckTold

LOGGER = logging.getLogger("specverify")
SECONDS_BETWEEN_LINES = 5.0
"""Seconds between two lines about the cases of one check."""


class LogLines:
    """Logs the progress of the checks of one subject."""

    def __init__(self, name: str, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        """Store the subject's ``name``, and the least time in seconds between two lines about cases."""
        self._name, self._seconds = name, seconds
        self._logged_at = monotonic()
        self._refuted: list[str] = []

    def progress(self, check: str, examined: int, cases: int) -> None:
        """Log how many cases of a check were examined; ``cases`` is their total number, or 0 if it is not known."""
        now = monotonic()
        if examined and now - self._logged_at >= self._seconds:
            self._logged_at = now
            number = f"{examined} of {cases} cases" if cases else f"{examined} cases"
            LOGGER.info("%s: %s, %s examined%s", self._name, check, number, self._so_far())

    def verdict(self, verdict: Verdict) -> None:
        """Log a verdict, unless the check does not apply."""
        if verdict.status is Status.NOT_APPLICABLE:
            return
        LOGGER.info(
            "%s: %s %s (%.1f s): %s%s",
            self._name,
            verdict.check,
            verdict.status.value,
            verdict.seconds,
            verdict.statement,
            self._so_far(),
        )
        if verdict.status is Status.REFUTED:
            self._refuted.append(verdict.check)

    def _so_far(self) -> str:
        return f"; refuted so far: {', '.join(self._refuted)}" if self._refuted else ""


def logged(name: str, examine: Callable[[CheckTold], Iterable[Verdict]]) -> Iterator[Verdict]:
    """Yield the verdicts of ``examine(progress)`` for the subject ``name``, and log them.

    ``examine`` calls ``progress(check, examined, cases)`` while it works; this logs the number of examined cases.
    """
    lines = LogLines(name)
    for verdict in examine(lines.progress):
        lines.verdict(verdict)
        yield verdict
