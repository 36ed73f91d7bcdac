"""The result of a request: where its text ends, and the probabilities and stream chunks returned with the tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from specverify.mutants.serving.request import ONE, ExactPmf, Request
from specverify.reference import Tokens

# Where a text ends: end-of-sequence tokens, stop strings over a detokeniser, number of new tokens, context length

Pieces = tuple[bytes, ...]
"""Token id -> bytes. The bytes of a character may be split over several tokens."""


def text_of(tokens: Tokens, pieces: Pieces) -> str:
    """Return the text of ``tokens``, whose bytes are in ``pieces``; an incomplete character becomes U+FFFD."""
    return b"".join(pieces[token] for token in tokens).decode(errors="replace")


def is_eos(token: int, eos: Tokens) -> bool:
    """Return whether ``token`` is one of the end-of-sequence ids ``eos``; False if ``eos`` is empty."""
    return token in eos


def has_stop_string(strings: Sequence[str], tokens: Tokens, fresh: int, pieces: Pieces) -> bool:
    """Return whether the text of ``tokens`` contains one of ``strings``.

    ``pieces`` has the bytes of each token. ``fresh``, the number of tokens at the end that are new in this round, is
    not used here.
    """
    return bool(strings) and any(string in text_of(tokens, pieces) for string in strings)


def stop_strings_of(request: Request, batch: Sequence[Request]) -> tuple[str, ...]:
    """Return the stop strings of ``request``, without those of other requests of the batch."""
    return request.stop_strings


def left(request: Request, new: int) -> int:
    """Return how many tokens may still be emitted after ``new`` new tokens.

    Two fields of ``request`` limit the number: ``max_new``, and ``max_context`` for the prompt and the new tokens
    together.
    """
    return min(request.max_new - new, request.max_context - len(request.prompt) - new)


def cut(ends: Callable[[int], bool], new: Tokens, accepted: int, most: int) -> tuple[int, bool]:
    """Return how many of a round's ``new`` tokens are kept, and whether the text is finished.

    The text is finished after the smallest ``count`` of tokens for which ``ends(count)`` is true, or after ``most``
    tokens. ``accepted``, the number of drafts among ``new``, is not used here.
    """
    for count in range(1, min(len(new), most) + 1):
        if ends(count):
            return count, True
    return min(len(new), most), len(new) >= most


def draft_budget(gamma: int, left: int) -> int:
    """Return the number of tokens to draft: ``gamma``, but at most ``left - 1``, and not below 0.

    ``left`` more tokens may be emitted, one of which comes from the target.
    """
    return max(min(gamma, left - 1), 0)


# What is handed out beside the tokens: probabilities, the most probable tokens, those of the prompt, a stream

Top = tuple[tuple[int, Fraction], ...]


def probability(rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int) -> Fraction:
    """Return the probability of ``token``, the new token at ``index`` of a round, in its own row of ``rows``.

    ``accepted``, the number of accepted drafts, and ``chunks``, the number of passes that fed parts of the prompt, are
    not used here.
    """
    return rows[index][token]


def most_probable(rows: Sequence[ExactPmf], index: int, count: int) -> Top:
    """Return the ``count`` most probable tokens, with their probabilities, in the row of the new token at ``index``.

    ``rows`` has the pmf of each position of the round.
    """
    row = rows[index]
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))
    return tuple((token, row[token]) for token in ranked[:count])


def of_prompt(rows: Sequence[ExactPmf], prompt: Tokens, drafts: int) -> tuple[Fraction, ...]:
    """Return the probability of each token of ``prompt`` given those before it (1 for the first).

    ``rows`` has the pmf after each token that was fed. The last ``drafts`` rows belong to drafts and are not used.
    """
    return (ONE, *(rows[index][token] for index, token in enumerate(prompt[1:])))


def listed(probabilities: tuple[Fraction, ...], waits: bool) -> tuple[Fraction, ...]:
    """Return the ``probabilities`` of the new tokens as they are returned to the caller: unchanged.

    ``waits``, whether each step waits for the results of the previous one, is not used here.
    """
    return tuple(probabilities)


def streamed(sent: str, new: Tokens, fresh: Tokens, drafts: Tokens, pieces: Pieces, last: bool) -> str:
    """Return the text to send after ``sent``: that of all ``new`` tokens, up to the last complete character.

    If this is the ``last`` message, an incomplete character is sent too. ``pieces`` has the bytes of each token.
    ``fresh``, the new tokens of this round, and ``drafts`` are not used here.
    """
    text = text_of(new, pieces)
    return text[len(sent) :] if last else text.rstrip("\ufffd")[len(sent) :]
