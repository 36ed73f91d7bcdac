"""Verdicts as data: the claim, the status, and the strength of the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple


class Status(StrEnum):
    """The status of a verdict. UNKNOWN never counts as a pass."""

    HOLDS = "holds"
    DECLARED_BIAS = "declared bias"
    """The law differs from the target's, and equals the bias that the subject declared."""
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    UNUSABLE = "unusable"
    """The subject raised, or violated the contract of its kind, so no verdict is possible."""
    REFUSED = "refused"
    """The engine rejects the setting with an error of its own."""
    NOT_APPLICABLE = "not applicable"


class Evidence(StrEnum):
    """The four strengths of evidence, strongest first.

    PROVED: there is a proof for all p and q. EXACT: laws are computed and compared. STATISTICAL: samples are tested.
    EQUAL: values that must be equal are compared.
    """

    PROVED = "proved"
    EXACT = "exact"
    STATISTICAL = "statistical"
    EQUAL = "equal"


class Counterexample(NamedTuple):
    """A failure that can be checked by hand.

    ``let`` describes the setting, ``then`` the result that is wrong, and ``because`` the reasons, each in lines of
    text.
    """

    let: tuple[str, ...]
    then: str
    because: tuple[str, ...] = ()
    again: str = ""
    """Argument for ``specverify replay``; '' if it cannot be replayed."""
    fault: str = ""
    """First sentence of the message: the defect in the terms of speculative decoding."""
    rows: tuple[str, ...] = ()
    """Table lines that show the difference, such as texts whose probabilities differ."""
    named: bool = True
    """Whether ``fault`` names the cause; False if it states only the difference."""
    sure: bool = False
    """Whether no other setting can show the cause better.

    It fits all examined paths of a setting that tells wrong rules apart, or it concerns several requests.
    """


class Examination(NamedTuple):
    """The result of one check on one case: the case holds if it is neither ``failed`` nor ``unknown``."""

    statement: str
    """One sentence that states the result."""
    failed: bool = False
    unknown: bool = False
    rational: bool = True
    """Whether the comparison was exact, between rationals."""
    counterexample: Counterexample | None = None
    figures: Mapping[str, Any] = {}
    """Figure name -> JSON value, such as runs, tv, rounds."""
    returned: str = ""
    """Name of the value that is wrong if an engine returns it beside the tokens, such as a count; else ''."""
    out_of_runs: bool = False
    """Whether the case is ``unknown`` because its law was not enumerated within the limit of runs."""
    is_empty: bool = False
    """Whether the case is ``unknown`` because it has nothing to compare, such as a text without drafts. It decides
    nothing if another case of the check has something."""


class Verdict(NamedTuple):
    """The result of one check on one subject, over all its cases.

    ``statement`` is the result in a sentence. ``claim`` is the claim that the check decides, such as "lossless" (None:
    no claim), ``evidence`` its strength, ``counterexample`` the reported failure or None, and ``seconds`` the duration
    of the check.
    """

    subject: str
    check: str
    status: Status
    statement: str
    claim: str | None = None
    evidence: Evidence | None = None
    counterexample: Counterexample | None = None
    figures: Mapping[str, Any] = {}
    """The figures of all cases, merged as ``figures.FIGURES`` declares, and of the verdict: ``cases``, ``skipped``
    (number of larger cases), ``rational`` (whether all are), ``noticed_above`` (smallest probability per replay with
    which a hidden draw must act so that the ``replays`` detect it), ``coupled_runs`` with ``coupled_noticed_above``,
    and ``notes`` about the process."""
    seconds: float = 0.0


AT_AN_EDGE: Final = "refuted at an edge"
"""Displayed word of a verdict whose only counterexample is at an edge, with a correct law; its status is REFUTED."""


def is_edge(verdict: Verdict) -> bool:
    """Return whether ``verdict`` is refuted by an edge, a fault at an end of a random number's interval.

    Other refutations show a wrong law.
    """
    return verdict.status is Status.REFUTED and "edge" in verdict.figures


def word_of(verdict: Verdict) -> str:
    """Return the status of a verdict as a word; it is ``AT_AN_EDGE`` for a refutation by an edge (see ``is_edge``)."""
    return AT_AN_EDGE if is_edge(verdict) else verdict.status.value


class DoesNotApply(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised during the examination of a case if the check does not apply to the subject; the message is the reason."""
