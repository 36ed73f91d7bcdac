"""What is handed out beside the tokens: probabilities, the most probable tokens, those of the prompt, a stream."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from specverify.mutants.serving.request import ONE, ExactPmf
from specverify.mutants.serving.stopping import Pieces, text_of
from specverify.reference import Tokens

Top = tuple[tuple[int, Fraction], ...]


def probability(rows: Sequence[ExactPmf], index: int, token: int, accepted: int, chunks: int) -> Fraction:
    """Return the probability of new token ``index`` of a round: its own row's, whether accepted or drawn.

    ``chunks`` passes went before that fed parts of the prompt and sampled nothing.
    """
    return rows[index][token]


def most_probable(rows: Sequence[ExactPmf], index: int, count: int) -> Top:
    """Return the ``count`` most probable tokens at new token ``index`` of a round, with their probabilities."""
    row = rows[index]
    ranked = sorted(range(len(row)), key=lambda token: (-row[token], token))
    return tuple((token, row[token]) for token in ranked[:count])


def of_prompt(rows: Sequence[ExactPmf], prompt: Tokens, drafts: int) -> tuple[Fraction, ...]:
    """Return the probability of each prompt token after those before it, 1 for the first; ``rows`` follow each token.

    ``drafts`` of the rows, at the end, belong to drafts.
    """
    return (ONE, *(rows[index][token] for index, token in enumerate(prompt[1:])))


def listed(probabilities: tuple[Fraction, ...], waits: bool) -> tuple[Fraction, ...]:
    """Return the probabilities as the answer holds them; ``waits`` if each step waits for its results."""
    return tuple(probabilities)


def streamed(sent: str, new: Tokens, fresh: Tokens, drafts: Tokens, pieces: Pieces, last: bool) -> str:
    """Return what to send after ``sent``: the text of all ``new`` tokens, up to the last complete character.

    ``fresh`` are this round's and ``drafts`` what was drafted for it; the ``last`` message holds everything.
    """
    text = text_of(new, pieces)
    return text[len(sent) :] if last else text.rstrip("\ufffd")[len(sent) :]
