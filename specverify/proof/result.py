"""The result of an attempt to prove a statement about all p and q."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from specverify.proof.symbolic_tables import Model


class ProofStatus(StrEnum):
    """The status of a proof. UNKNOWN is never turned into PROVED."""

    PROVED = "proved"
    REFUTED = "refuted"
    """There are p and q where it is false, given, and found false again by the ordinary enumeration."""
    UNKNOWN = "unknown"


class Proof(NamedTuple):
    """A statement about all p and q, and its result."""

    subject: str
    what: str
    vocabulary: int
    gamma: int
    status: ProofStatus
    statement: str
    """One sentence: what is proved, or what was to be and where it fails or why it is open."""
    queries: int
    """Questions put to the solver."""
    seconds: float
    model: Model | None = None
    """Where the statement is false."""
    figures: Mapping[str, Any] = {}
    """JSON-able: paths, outcomes and cells looked at; for a refutation the outcome and its two masses."""


class ReplayFailed(AssertionError):  # noqa: N818 - named for what it says of the search
    """Raised if the ordinary enumeration does not confirm a refutation, which is an error in this package."""
