"""Verdicts as data: the question, the answer, and the strength of the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple


class Status(StrEnum):
    """The three verdicts. UNKNOWN is never counted as a pass."""

    HOLDS = "holds"
    DECLARED_BIAS = "declared bias"
    """The law is not the target's, was declared so, and is exactly the declared one."""
    REFUTED = "refuted"
    UNKNOWN = "unknown"
    UNUSABLE = "unusable"
    """The subject raised, or broke the contract of its kind, so nothing can be said."""
    REFUSED = "refused"
    """The engine does not take the setting, and says so itself."""
    NOT_APPLICABLE = "not applicable"


class Evidence(StrEnum):
    """The four strengths of evidence, strongest first."""

    PROVED = "proved"
    EXACT = "exact"
    STATISTICAL = "statistical"
    EQUAL = "equal"


class Counterexample(NamedTuple):
    """A failure that can be checked by hand: setting, expected and actual result, cause, and how to reproduce it."""

    let: tuple[str, ...]
    then: str
    because: tuple[str, ...] = ()
    again: str = ""
    """The argument of ``specverify replay``."""
    fault: str = ""
    """The first sentence of the message: what is wrong, in the words of decoding."""
    rows: tuple[str, ...] = ()
    """The few lines that decide, such as the texts whose probabilities differ."""
    named: bool = True
    """Whether ``fault`` names a cause, and not the difference alone."""


class Examination(NamedTuple):
    """The result of one check on one case."""

    statement: str
    """One sentence."""
    failed: bool = False
    unknown: bool = False
    rational: bool = True
    """Whether the evidence is equality of rationals."""
    counterexample: Counterexample | None = None
    figures: Mapping[str, Any] = {}
    """JSON-able numbers: runs, tv, rounds ..."""
    returned: str = ""
    """The name of what an engine returned beside the tokens, where that is what failed."""


class Verdict(NamedTuple):
    """The result of one check on one subject, over all its cases."""

    subject: str
    check: str
    status: Status
    statement: str
    claim: str | None = None
    evidence: Evidence | None = None
    counterexample: Counterexample | None = None
    figures: Mapping[str, Any] = {}
    """Those of its cases, merged as ``figures.FIGURES`` declares, and of all together: ``cases``, how many larger ones
    were ``skipped``, whether all are ``rational``, from which probability on ``replays`` notice (``noticed_above``),
    and ``coupled_runs`` (``coupled_noticed_above``),
    ``notes`` about the process."""
    seconds: float = 0.0


AT_AN_EDGE: Final = "refuted at an edge"
"""The word for a verdict that an edge refutes, and no wrong law; its status is REFUTED."""


def is_edge(verdict: Verdict) -> bool:
    """Return whether the refutation is an edge (``base.edges``) and not a wrong law."""
    return verdict.status is Status.REFUTED and "edge" in verdict.figures


def word_of(verdict: Verdict) -> str:
    """Return the status as a word; edges and wrong laws have different words."""
    return AT_AN_EDGE if is_edge(verdict) else verdict.status.value


class DoesNotApply(Exception):  # noqa: N818 - reads as the sentence it is
    """Raised while a case is examined, if the check does not apply to the subject. The message is the reason."""
