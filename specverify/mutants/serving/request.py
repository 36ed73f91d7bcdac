"""The request to the serving engine, and the types that all of its modules share."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from specverify.reference import Tokens

ExactPmf: TypeAlias = tuple[Fraction, ...]
"""An exact pmf, ``[vocabulary]``."""

ZERO, ONE = Fraction(0), Fraction(1)


class Aborted(Exception):  # noqa: N818 - reads as what becomes of the requests
    """Raised if the engine reaches an invalid state; all its requests then end with an error."""


class Parameters(NamedTuple):
    """The sampling parameters, as exact rationals; by default ``top_k``, ``top_p`` and ``min_p`` remove no token."""

    temperature: int = 1
    """Exponent of the probabilities: the reciprocal of what is called temperature elsewhere; 0 means greedy
    decoding."""
    repetition: Fraction = ONE
    """Factor applied once to the mass of every token that has occurred."""
    frequency: Fraction = ONE
    """Factor applied to the mass of every token once per occurrence."""
    bias: tuple[tuple[int, Fraction], ...] = ()
    """Pairs (token, factor applied to its mass)."""
    top_k: int = 0
    top_p: Fraction = ONE
    min_p: Fraction = ZERO
    bad_words: tuple[Tokens, ...] = ()
    """Phrases of one or more tokens that must not be generated."""
    allowed: Tokens = ()
    """The only tokens that may be generated; () allows all."""
    min_new: int = 0
    """Number of new tokens before an end-of-sequence token is allowed."""


class Grammar(NamedTuple):
    """A deterministic automaton over tokens; ``edges`` are (state, token, next state), 0 is the first state."""

    edges: tuple[tuple[int, int, int], ...]
    trigger: int | None = None
    """Token after which the grammar applies; None: from the first new token on."""
    last: int = -1
    """The state in which the grammar is complete and no longer restricts tokens."""


class Request(NamedTuple):
    """One text to decode, and its sampling parameters.

    At most ``max_new`` tokens follow the ``prompt``. The text ends early after a token in ``eos`` or with one of
    ``stop_strings``. ``grammar`` restricts the tokens; None for no restriction.
    """

    prompt: Tokens
    max_new: int
    parameters: Parameters = Parameters()
    eos: Tokens = ()
    stop_strings: tuple[str, ...] = ()
    grammar: Grammar | None = None
    max_context: int = 24
    """Largest number of tokens of prompt and text together."""
    arrives: int = 0
    """Engine step at which the request arrives."""
    continues: bool = False
    """Whether the prompt continues the previous conversation in the same slot."""


def admit(body: Mapping[str, Any]) -> Request:
    """Return the request whose fields are the entries of ``body``.

    ``body`` belongs to the caller and is not changed, so that the caller can send it again.
    """
    return Request(**body)


def one_hot(token: int, size: int) -> ExactPmf:
    """Return the point mass on ``token`` in a vocabulary of ``size`` tokens."""
    return tuple(ONE if index == token else ZERO for index in range(size))


def normalised(masses: ExactPmf) -> ExactPmf | None:
    """Return ``masses`` divided by their sum, or None if the sum is 0."""
    total = sum(masses)
    return masses if total == 1 else tuple(mass / total for mass in masses) if total else None


def argmax(row: ExactPmf) -> int:
    """Return the index of the largest entry of ``row``; of equal ones, the first."""
    return row.index(max(row))
