"""The messages between edge and cloud (``wire`` converts them to JSON, ``schema.json`` describes the format).

The fields are those of the edge-cloud guide, Section 5, with additions that make the protocol exact and repetitions
harmless. Every message has ``session``, ``epoch`` (increased when the edge opens its session again) and ``known``, the
number of tokens that both sides have committed. Each round commits at least one token, so (epoch, known) is the
sequence number of a round. It also asserts that the texts of both sides have equal lengths.

A request contains the part of q that the mode sends; a pmf is sent as its support (``SparsePmf``).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from ..types import Tokens


class SparsePmf(NamedTuple):
    """A pmf over ``size`` tokens, without its zeros.

    ``tokens`` are the tokens of positive probability in increasing order, ``masses`` their probabilities.
    """

    size: int
    tokens: Tokens
    masses: tuple[Any, ...]


class Open(NamedTuple):
    """From the edge: open the session with the committed text ``tokens``, or open it again under a larger ``epoch``.

    The session with the larger epoch replaces the earlier one. ``known`` is the number of tokens of the text. ``eos``
    are the end-of-sequence tokens, and ``mode`` is the name of the mode of verification.
    """

    session: str
    epoch: int
    known: int
    tokens: Tokens
    eos: Tokens
    mode: str
    seed: int | None = None
    """Seed of the shared noise, at most ``LARGEST_SEED``; None for modes without shared noise."""


class Verify(NamedTuple):
    """From the edge: verify the draft after ``known`` tokens, with the part of q that the mode sends.

    This part is nothing, or q(y) of each draft y (``masses``), or the rows of q (``rows``).
    """

    session: str
    epoch: int
    known: int
    draft: Tokens
    masses: tuple[Any, ...]
    rows: tuple[SparsePmf, ...]


class Supply(NamedTuple):
    """From the edge: the row of q that the cloud requested, and the draft, so that a cloud without memory can reply."""

    session: str
    epoch: int
    known: int
    draft: Tokens
    position: int
    row: SparsePmf


class Opened(NamedTuple):
    """From the cloud: the session is open. ``session``, ``epoch`` and ``known`` are those of the request."""

    session: str
    epoch: int
    known: int


class VerifiedReply(NamedTuple):
    """From the cloud: the number of accepted drafts (``accepted``), and the token after them.

    ``session``, ``epoch`` and ``known`` are those of the request; with them the edge recognises the round.
    """

    session: str
    epoch: int
    known: int
    accepted: int
    token: int


class Wanted(NamedTuple):
    """From the cloud: the draft at ``position`` is rejected, and the row of q there is needed to replace it.

    ``session``, ``epoch`` and ``known`` are those of the request.
    """

    session: str
    epoch: int
    known: int
    position: int


class Refused(NamedTuple):
    """From the cloud: the request is refused and nothing changed; ``reason`` is one of ``REASONS``.

    ``session``, ``epoch`` and ``known`` are those of the request.
    """

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
"""Name on the wire -> message type."""
LARGEST_SEED = 2**53 - 1
"""Largest seed: JSON readers that use float64 represent every integer up to this one exactly."""
REASONS = ("unknown", "stale", "conflict", "misaligned")
"""Error codes: no such session or epoch; round already finished; content differs from an earlier message with the same
number; contexts differ."""


def is_seed(value: Any) -> bool:
    """Return whether ``value`` can be the seed of a session."""
    return type(value) is int and 0 <= value <= LARGEST_SEED
