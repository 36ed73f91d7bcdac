"""Reading what a verifier emitted, and saying in a sentence what is wrong with it."""

from __future__ import annotations

from typing import Any

from reference import Tokens
from specverify.intercept.deferred import known
from specverify.subjects.subject import UnusableSubject


def emitted_row(answer: Any, drafts: int, vocabulary: int, who: str = "it") -> Tokens:
    """Return what was emitted for one row as integers; tokens that are still open are looked at.

    Raises ``UnusableSubject``, naming the row as ``who``, unless it is 1 to ``drafts + 1`` tokens of the vocabulary and
    nothing but negative placeholders after them.
    """
    try:
        row = answer.reshape(-1).tolist() if hasattr(answer, "reshape") else answer
        tokens = [int(known(token)) for token in row]
    except TypeError:
        raise UnusableSubject(f"{who} returned {described(answer)}, expected a row of integer tokens") from None
    end = next((index for index, token in enumerate(tokens) if token < 0), len(tokens))
    if max(tokens[end:], default=-1) >= 0:
        raise UnusableSubject(f"{who} emitted {tokens}, expected nothing but placeholders after the first negative one")
    if not 1 <= end <= drafts + 1:
        raise UnusableSubject(f"{who} emitted {end} tokens, expected 1 to {drafts + 1}: accepted drafts and one more")
    if max(tokens) >= vocabulary:
        raise UnusableSubject(f"{who} emitted token {max(tokens)}, expected one of 0 to {vocabulary - 1}")
    return tuple(tokens[:end])


def described(answer: Any) -> str:
    """Return the type of an answer and its shape."""
    shape = getattr(answer, "shape", None)
    return type(answer).__name__ + ("" if shape is None else f" of shape {list(shape)}")
