"""Where a text ends: end-of-sequence tokens, stop strings over a detokeniser, number of new tokens, context length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from specverify.mutants.serving.request import Request
from specverify.reference import Tokens

Pieces = tuple[bytes, ...]
"""The bytes of every token. A character of several bytes may be split over tokens."""


def text_of(tokens: Tokens, pieces: Pieces) -> str:
    """Return the text of tokens; a character that is not complete shows as a replacement character."""
    return b"".join(pieces[token] for token in tokens).decode(errors="replace")


def is_eos(token: int, eos: Tokens) -> bool:
    """Return whether a token ends the text; no token does if there are none."""
    return token in eos


def has_stop_string(strings: Sequence[str], tokens: Tokens, fresh: int, pieces: Pieces) -> bool:
    """Return whether the text of ``tokens``, the last ``fresh`` of them new in this round, holds a stop string."""
    return bool(strings) and any(string in text_of(tokens, pieces) for string in strings)


def stop_strings_of(request: Request, batch: Sequence[Request]) -> tuple[str, ...]:
    """Return the stop strings that count for a request: its own, whatever else is in the batch."""
    return request.stop_strings


def left(request: Request, new: int) -> int:
    """Return how many more new tokens there may be."""
    return min(request.max_new - new, request.max_context - len(request.prompt) - new)


def cut(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return how many of a round's ``new`` tokens stay, and whether the text is finished.

    ``ends(count)`` says whether the first ``count`` end the text, ``most`` more may come, ``accepted`` were drafts.
    """
    for count in range(1, min(len(new), most) + 1):
        if ends(count):
            return count, True
    return min(len(new), most), len(new) >= most


def draft_budget(gamma: int, left: int) -> int:
    """Return how many tokens to draft where ``left`` more may come: the pass adds one of its own."""
    return max(min(gamma, left - 1), 0)
