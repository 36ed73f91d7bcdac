"""Prompt lookup: copy the tokens after the first occurrence of the last tokens (Saxena, 2023).

The longest suffix is tried first, down to one token; of several occurrences the leftmost with a continuation counts.
Nothing is drawn.

The published function requires a whole continuation: the leftmost position with as many tokens after it as requested,
or nothing (its copy in hemingkx/Spec-Bench at fd2c1cd, ``model/pld/pld.py``, ``find_candidate_pred_tokens``). Here a
shorter continuation is copied too. The law does not depend on it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..types import Draft, Drafter, Draws, Pmf, Tokens, chain
from ..validation import check_integer, check_integers, checked_tokens
from .model import stateless


def lookup(tokens: Tokens, max_ngram: int, count: int) -> Tokens:
    """Return up to ``count`` tokens after the leftmost earlier copy of the longest suffix; () if there is none.

    Suffixes have at most ``max_ngram`` tokens. Raises ``ValueError`` unless ``tokens`` are tokens and the other two are
    integers.
    """
    check_integers(max_ngram=max_ngram, count=count)
    tokens = checked_tokens(tokens, "the text")
    for length in range(min(max_ngram, len(tokens) - 1), 0, -1):
        suffix = tokens[len(tokens) - length :]
        for start in range(len(tokens) - length):
            if tokens[start : start + length] == suffix:
                return tokens[start + length : start + length + count]
    return ()


def prompt_lookup_drafter(max_ngram: int = 3, eos: Tokens = ()) -> Drafter:
    """Return a drafter that copies the tokens found by ``lookup``, up to the first token in ``eos``, which is left out.

    Raises ``ValueError`` for ``max_ngram`` < 1, and for anything but tokens in ``eos``.
    """
    check_integer(max_ngram, "max_ngram")
    eos = checked_tokens(eos, "eos")

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        result = lookup(prefix, max_ngram, gamma)
        end = next((index for index, token in enumerate(result) if token in eos), len(result))
        return chain(result[:end], (None,) * end)

    return Drafter(init=stateless, propose=propose, observe=stateless)
