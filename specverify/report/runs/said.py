"""The results of a run in one form, independent of the kind of run; all reports are written from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from specverify.base.verdict import AT_AN_EDGE, Status, Verdict, word_of
from specverify.laws.near_ties import Parting

FAILED = (Status.REFUTED, Status.UNUSABLE)
OPEN = (Status.UNKNOWN,)
SETTLED = (Status.HOLDS, Status.DECLARED_BIAS)
APART = (Status.REFUSED, Status.NOT_APPLICABLE)
"""Statuses of checks that were not run on the subject."""


class Level(NamedTuple):
    """One line of a panel: its ``label``, the observed value, and the expected value (None if unknown).

    ``low`` and ``high`` are the ends of a confidence band for the true value; None if there is no band.
    """

    label: str
    seen: float
    expected: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def outside(self) -> bool:
        """Return whether the expected value is outside the confidence band (``low`` to ``high``) of the observed value.

        False without an expected value or a band.
        """
        if self.expected is None or self.low is None or self.high is None:
            return False
        return not self.low <= self.expected <= self.high


class Levels(NamedTuple):
    """A panel of a report with one line (``rows``) per item: its observed and its expected value.

    The values are between 0 and 1; ``seen_as`` and ``expected_as`` are the headings of their columns.
    """

    title: str
    said: str
    """A sentence about what the panel shows, and about the certainty of the bands."""
    rows: tuple[Level, ...]
    each: str
    """The word for the item in a line."""
    seen_as: str = "seen"
    expected_as: str = "expected"


class EvidencePanel(NamedTuple):
    """A panel with the curve of an e-value over the number of samples.

    The e-value is the evidence against the subject. ``said`` is a sentence about the curve.
    """

    title: str
    said: str
    points: tuple[tuple[int, float], ...]
    """(samples, log10 of the e-value after them); infinite after an impossible outcome."""
    refuted_at: float
    """log10 of the e-value at which the check refutes."""


class Partings(NamedTuple):
    """A panel of the first differences between greedy texts with speculation and without it.

    ``said`` is a sentence about the panel, and ``rows`` are the differences.
    """

    title: str
    said: str
    rows: tuple[Parting, ...]


Panel: TypeAlias = Levels | EvidencePanel | Partings


class SubjectSaid(NamedTuple):
    """All results of one subject: its verdicts, and the panels that show their numbers."""

    name: str
    verdicts: tuple[Verdict, ...]
    panels: tuple[Panel, ...] = ()


class MatrixRow(NamedTuple):
    """A planted bug of the kill matrix, and the results of all checks on it.

    ``category`` is the class of the bug, ``summary`` the bug in a few words, and ``citation`` the project in which it
    was found. ``as_expected`` states whether the check that must refute the bug did so, and held on the program without
    it.
    """

    name: str
    category: str
    summary: str
    citation: str
    named: str
    """The check that must refute it, and hold on the program without the bug."""
    said: Mapping[str, str]
    """Check -> ``killed`` or the status."""
    as_expected: bool


class Matrix(NamedTuple):
    """The kill matrix: which checks refute which planted bugs.

    ``checks`` are the names of the columns, and ``rows`` has one row for each bug.
    """

    checks: tuple[str, ...]
    rows: tuple[MatrixRow, ...]


class RunSaid(NamedTuple):
    """All results of a run, with its command, seed and versions."""

    kind: str
    """``verdicts``, ``statistics``, ``kill matrix`` or ``campaign``."""
    subjects: tuple[SubjectSaid, ...]
    facts: Mapping[str, str]
    """Name -> value of what was fixed before the run, such as seed and alarm budget."""
    unfinished: tuple[str, ...] = ()
    """Sentences about the parts of the plan that are not done."""
    matrix: Matrix | None = None
    command: str = ""
    versions: Mapping[str, str] = {}

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Return all verdicts, in the order of the subjects."""
        return tuple(verdict for subject in self.subjects for verdict in subject.verdicts)


def counted(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    """Return status word -> number of verdicts, in the order of ``Status``, without zeros and NOT_APPLICABLE.

    REFUTED has two words: one for a wrong law, and after it one for faults only at edges (random numbers very close to
    0 or 1).
    """
    words = [word for status in Status for word in (status.value, *[AT_AN_EDGE] * (status is Status.REFUTED))]
    numbers = {word: sum(word_of(verdict) == word for verdict in verdicts) for word in words}
    return {word: number for word, number in numbers.items() if number and word != Status.NOT_APPLICABLE}


BY_CLAIM = ("claim", "holds", "refuted or unusable", "unknown")
"""Column headings of the counts by claim."""


def by_claim(verdicts: tuple[Verdict, ...]) -> Mapping[str, tuple[int, ...]]:
    """Return claim -> three numbers of the verdicts on this claim: settled, failed, undecided.

    Settled are HOLDS and DECLARED_BIAS, failed REFUTED and UNUSABLE, undecided UNKNOWN. Verdicts of checks that belong
    to no claim are counted last, under a name of their own.
    """
    asked = [verdict for verdict in verdicts if verdict.status not in APART]
    claims = list(dict.fromkeys(verdict.claim for verdict in asked if verdict.claim))
    result = {str(claim): [verdict for verdict in asked if verdict.claim == claim] for claim in claims}
    if rest := [verdict for verdict in asked if not verdict.claim]:
        result["owed whatever is claimed"] = rest
    return {
        claim: tuple(sum(verdict.status in group for verdict in mine) for group in (SETTLED, FAILED, OPEN))
        for claim, mine in result.items()
    }


def printable(text: str, kept: str) -> str:
    """Return ``text`` without invalid characters and characters that reorder text, except those in ``kept``."""
    return "".join(letter if letter.isprintable() or letter in kept else "\ufffd" for letter in text)
