"""Draft the most frequent continuation of the suffix with the best score (SuffixDecoding, 2411.04975).

The rule is that of the release (snowflakedb/ArcticInference at 9d46438, ``csrc/suffix_decoding/suffix_tree.cc``,
``SuffixTree::speculate`` and ``_speculate_path``). Every suffix of the text is looked up in a tree of texts. If it
occurs, the most frequent next token is followed while the product of relative counts is at least ``least``, for at most
``factor`` times as many tokens as the suffix has. The score of such a draft is the sum of those products. The draft
with the best score is used, in a tie that of the longer suffix. Counts are of all occurrences, including the one at the
end. The release states no order of equally frequent tokens; here the lower id goes first.

There are two trees (``arctic_inference/suffix_decoding/cache.py``, ``speculate``). One has the prompt and response of
this request, the other all responses, including this request's so far, but no prompts. Each gives a draft; the better
score is used, that of this request in a tie. Not covered: the release can also draft a tree of continuations.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..types import Draft, Drafter, Draws, Pmf, Tokens, chain


def followers(texts: tuple[Tokens, ...], context: Tokens) -> tuple[int, dict[int, int]]:
    """Return how often ``context`` occurs in the texts, and the count of each token that follows it."""
    size, times = len(context), 0
    after: dict[int, int] = {}
    for text in texts:
        for start in range(len(text) - size + 1):
            if text[start : start + size] == context:
                times += 1
                if start + size < len(text):
                    after[text[start + size]] = after.get(text[start + size], 0) + 1
    return times, after


def followed(texts: tuple[Tokens, ...], context: Tokens, most: int, least: Any) -> tuple[Tokens, Any]:
    """Return the most frequent path after ``context`` in the ``texts``, and its score.

    The score is the sum, over the tokens of the path, of the product of relative counts up to the token. The path ends
    after ``most`` tokens, and before a product below ``least``.
    """
    path: Tokens = ()
    chance, score = Fraction(1), Fraction(0)
    while len(path) < most:
        times, after = followers(texts, context + path)
        if not after:
            break
        token = min(after, key=lambda each: (-after[each], each))
        chance = chance * Fraction(after[token], times)
        if chance < least:
            break
        path, score = (*path, token), score + chance
    return path, score


def best_draft(texts: tuple[Tokens, ...], context: Tokens, factor: Any, least: Any, gamma: int) -> tuple[Tokens, Any]:
    """Return the draft with the best score, and its score; () and 0 if nothing is found.

    Each proper suffix of ``context`` that occurs in ``texts`` has a draft, the most frequent path after it
    (``followed``). The path has at most ``gamma`` tokens, and at most ``factor`` times as many as the suffix. It ends
    before the product of the relative counts of its tokens falls below ``least``.
    """
    best: tuple[Tokens, Any] = ((), 0)
    for length in range(1, len(context)):
        suffix = context[len(context) - length :]
        if not followers(texts, suffix)[1]:
            break
        result = followed(texts, suffix, min(gamma, int(length * factor)), least)
        best = result if result[1] >= best[1] else best
    return best


def suffix_drafter(texts: tuple[Tokens, ...], factor: Any, least: Any) -> Drafter:
    """Return a drafter of the most frequent continuation in the responses ``texts`` and the text so far.

    A draft has at most ``factor`` times as many tokens as the matched suffix, and ends before the product of the
    relative counts of its tokens falls below ``least``. The drafter's state is the length of the prompt. Raises
    ``ValueError`` if ``factor`` or ``least`` is negative.
    """
    if factor < 0 or least < 0:
        raise ValueError(f"factor is {factor} and least {least}, expected numbers >= 0")

    def propose(draws: Draws, begin: int, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        own = best_draft((prefix,), prefix, factor, least, gamma)
        shared = best_draft((*texts, prefix[begin:]), prefix, factor, least, gamma)
        tokens = (own if own[1] >= shared[1] else shared)[0]
        return chain(tokens, (None,) * len(tokens))

    return Drafter(init=len, propose=propose, observe=lambda begin, *_: begin)
