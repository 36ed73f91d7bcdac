"""Reading what a verifier emitted, and saying in a sentence what is wrong with it.

Tokens are whole numbers. Integers of any kind are; so are floats that are whole, because a buffer of float64 or float32
holds every token id below 2**24 as it is, and code that fills one is right. Not so a bool, which answers a question and
is no token, nor a half, which rounds ids above 2048 (float16) or 256 (bfloat16): with the small vocabularies here it
would look right. A number that is not whole, or is outside the vocabulary, is emitted as it is, so that the checks of
laws and supports judge it, with a counterexample.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from reference import Tokens
from specverify.intercept.unknowns.deferred import known
from specverify.subjects.subject import UnusableSubject

NOT_TOKENS = {
    "bool": "bools, expected token ids: a mask is no row of tokens",
    "float16": "float16, expected a type that holds every token id: it rounds those above 2048",
    "bfloat16": "bfloat16, expected a type that holds every token id: it rounds those above 256",
}


def emitted_row(answer: Any, drafts: int, who: str = "it") -> Tokens:
    """Return what was emitted for one row; tokens that are still open are looked at.

    Raises ``UnusableSubject``, naming the row as ``who``, unless it is 1 to ``drafts + 1`` numbers and nothing but
    negative placeholders after them. Numbers that are no token of the vocabulary are returned as they are.
    """
    try:
        _check_type(answer, who)
        row = answer.reshape(-1).tolist() if hasattr(answer, "reshape") else answer
        tokens = [_number(known(token), who) for token in row]
    except TypeError:
        raise UnusableSubject(f"{who} returned {type_and_shape(answer)}, expected a row of integer tokens") from None
    end = next((index for index, token in enumerate(tokens) if token < 0 and token == int(token)), len(tokens))
    if max(tokens[end:], default=-1) >= 0:
        raise UnusableSubject(f"{who} emitted {tokens}, expected nothing but placeholders after the first negative one")
    if not 1 <= end <= drafts + 1:
        raise UnusableSubject(f"{who} emitted {end} tokens, expected 1 to {drafts + 1}: accepted drafts and one more")
    return tuple(tokens[:end])


def no_token(token: Any, vocabulary: int) -> str | None:
    """Say why a number that was emitted is no token, or None if it is one."""
    if token != int(token):
        return f"{token} is not a whole number"
    return None if 0 <= token < vocabulary else f"{token} is outside the vocabulary of {vocabulary}"


def type_and_shape(answer: Any) -> str:
    """Return the type of an answer and its shape."""
    shape = getattr(answer, "shape", None)
    return type(answer).__name__ + ("" if shape is None else f" of shape {list(shape)}")


def _number(token: Any, who: str) -> Any:
    """Return a number that was emitted, as an integer if it is whole; raises ``TypeError`` if it is none."""
    _check_type(token, who)
    value = token.item() if hasattr(token, "item") else token
    if isinstance(value, bool):
        raise UnusableSubject(f"{who} emitted {value}, one of {NOT_TOKENS['bool']}")
    if not isinstance(value, Real):
        raise TypeError
    if not math.isfinite(value):
        raise UnusableSubject(f"{who} emitted {value}, expected whole numbers")
    whole = int(value)  # type: ignore[call-overload]  # mypy knows of no integer part of a real number
    return whole if value == whole else value


def _check_type(answer: Any, who: str) -> None:
    kind = str(getattr(answer, "dtype", "")).rpartition(".")[2]
    if kind in NOT_TOKENS:
        raise UnusableSubject(f"{who} emitted {NOT_TOKENS[kind]}")
