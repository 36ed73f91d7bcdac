"""The request to the serving engine, and the types that all of its modules share."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from specverify.reference import Tokens

ExactPmf: TypeAlias = tuple[Fraction, ...]
"""A pmf ``[vocabulary]``, exact."""

ZERO, ONE = Fraction(0), Fraction(1)


class Aborted(Exception):  # noqa: N818 - reads as what becomes of the requests
    """Raised if the engine reaches an invalid state; all its requests then end with an error."""


class Parameters(NamedTuple):
    """The sampling parameters, as exact rationals."""

    temperature: int = 1
    """The power to which masses are raised, so 1 over what is usually called temperature; 0 is greedy decoding."""
    repetition: Fraction = ONE
    """Factor on the mass of every token that occurred, once."""
    frequency: Fraction = ONE
    """Factor on the mass of every token, once for each time it occurred."""
    bias: tuple[tuple[int, Fraction], ...] = ()
    """Factors on the masses of single tokens."""
    top_k: int = 0
    top_p: Fraction = ONE
    min_p: Fraction = ZERO
    bad_words: tuple[Tokens, ...] = ()
    """Phrases of one or more tokens that must not come out."""
    allowed: Tokens = ()
    """The only tokens that may come out; all of them if empty."""
    min_new: int = 0
    """New tokens before the first that may end the text."""


class Grammar(NamedTuple):
    """A deterministic automaton over tokens; ``edges`` are (state, token, next state), 0 is the first state."""

    edges: tuple[tuple[int, int, int], ...]
    trigger: int | None = None
    """The token after which the grammar holds; from the first new token on if None."""
    last: int = -1
    """The state in which the text is complete: nothing is prescribed any more."""


class Request(NamedTuple):
    """One text to decode, and its sampling parameters."""

    prompt: Tokens
    max_new: int
    parameters: Parameters = Parameters()
    eos: Tokens = ()
    stop_strings: tuple[str, ...] = ()
    grammar: Grammar | None = None
    max_context: int = 24
    """Tokens of prompt and text together, at most."""
    arrives: int = 0
    """The step of the engine at which the request comes."""
    continues: bool = False
    """Whether its prompt follows the whole conversation before it, in the same slot."""


def admit(body: Mapping[str, Any]) -> Request:
    """Return the request of a caller's ``body``, which is not changed: the caller may send it again."""
    return Request(**body)


def one_hot(token: int, size: int) -> ExactPmf:
    """Return the point mass on ``token``."""
    return tuple(ONE if index == token else ZERO for index in range(size))


def normalised(masses: ExactPmf) -> ExactPmf | None:
    """Return ``masses`` with sum 1, or None if there is nothing to normalise."""
    total = sum(masses)
    return masses if total == 1 else tuple(mass / total for mass in masses) if total else None


def argmax(row: ExactPmf) -> int:
    """Return the first largest entry."""
    return row.index(max(row))
