"""The messages between edge and cloud (``wire`` converts them to JSON, ``schema.json`` describes the format).

The fields are those of the edge-cloud guide, Section 5, with what makes them exact and safe to repeat. Every message
carries ``session``, ``epoch`` (raised when the edge opens its session again) and ``known``, the number of tokens both
sides have committed. Each round commits at least one token, so (epoch, known) orders the rounds: it is the sequence
number, and every message asserts with it that the two contexts have equal lengths.

The upload brings what the mode sends of q; a pmf travels as its support (``SparsePmf``).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from ..types import Tokens


class SparsePmf(NamedTuple):
    """A pmf over ``size`` tokens: those of positive mass in increasing order, and their masses."""

    size: int
    tokens: Tokens
    masses: tuple[Any, ...]


class Open(NamedTuple):
    """Edge: begin, or begin again, from these tokens. Larger epochs replace smaller ones."""

    session: str
    epoch: int
    known: int
    tokens: Tokens
    eos: Tokens
    mode: str
    seed: int | None = None
    """Of the noise that both sides hold, up to ``LARGEST_SEED``; None for modes without."""


class Verify(NamedTuple):
    """Edge: the draft after ``known`` tokens, with what the mode sends of q: nothing, q(y_i) alone, or its rows."""

    session: str
    epoch: int
    known: int
    draft: Tokens
    masses: tuple[Any, ...]
    rows: tuple[SparsePmf, ...]


class Supply(NamedTuple):
    """Edge: the row of q that the cloud asked for, with the draft, so that it can be answered without memory."""

    session: str
    epoch: int
    known: int
    draft: Tokens
    position: int
    row: SparsePmf


class Opened(NamedTuple):
    """Cloud: the session is open."""

    session: str
    epoch: int
    known: int


class VerifiedReply(NamedTuple):
    """Cloud: the number of accepted drafts, and this token follows them."""

    session: str
    epoch: int
    known: int
    accepted: int
    token: int


class Wanted(NamedTuple):
    """Cloud: the draft at ``position`` is rejected, and its replacement needs that row of q."""

    session: str
    epoch: int
    known: int
    position: int


class Refused(NamedTuple):
    """Cloud: the request is refused and nothing changed. ``reason`` is one of ``REASONS``."""

    session: str
    epoch: int
    known: int
    reason: str


EdgeRequest: TypeAlias = Open | Verify | Supply
Reply: TypeAlias = Opened | VerifiedReply | Wanted | Refused
KINDS: dict[str, type[Any]] = {
    "open": Open,
    "verify": Verify,
    "supply": Supply,
    "opened": Opened,
    "verified": VerifiedReply,
    "wanted": Wanted,
    "refused": Refused,
}
"""What each message is called on the wire."""
LARGEST_SEED = 2**53 - 1
"""Integers up to here are the same number for every reader of JSON."""
REASONS = ("unknown", "stale", "conflict", "misaligned")
"""No such session or epoch; a round long over; not what was sent before under this number; contexts differ."""


def is_seed(value: Any) -> bool:
    """Return whether ``value`` can be the seed of a session."""
    return type(value) is int and 0 <= value <= LARGEST_SEED
