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
    """There are p and q for which the statement is false. They are reported, and the ordinary enumeration confirmed
    them."""
    UNKNOWN = "unknown"


class Proof(NamedTuple):
    """A statement about all p and q, and its result.

    ``what`` is the name of the statement, ``subject`` the algorithm that it concerns. The statement is about all pmfs
    over ``vocabulary`` tokens and ``gamma`` drafts. ``status`` is its result, and ``seconds`` the duration of the
    proof.
    """

    subject: str
    what: str
    vocabulary: int
    gamma: int
    status: ProofStatus
    statement: str
    """One sentence: what is proved; or what should be proved, and where it fails or why it is open."""
    queries: int
    """Number of solver queries."""
    seconds: float
    model: Model | None = None
    """Values of the unknowns for which the statement is false; None unless refuted."""
    figures: Mapping[str, Any] = {}
    """JSON values: numbers of paths, outcomes and cells; for a refutation the outcome and its two probabilities."""


class ReplayFailed(AssertionError):  # noqa: N818 - named for what it says of the search
    """Raised if the ordinary enumeration does not confirm a refutation. This is a defect of specverify."""
