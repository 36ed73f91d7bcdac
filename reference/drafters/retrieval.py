"""Retrieved drafts (REST, arXiv 2311.08252): the tokens after the last tokens, in a datastore and in the text so far.

The longest suffix that occurs anywhere decides. The continuations of all its occurrences form a prefix tree, of which
the most frequent ``nodes`` prefixes are kept. A prefix is at least as frequent as its extensions, and ties prefer the
shorter one, then the one found first, so the kept prefixes form a tree.
"""

from __future__ import annotations

from itertools import chain

from ..types import Drafter, Tokens
from .text_paths import paths_drafter


def continuations(tokens: Tokens, texts: tuple[Tokens, ...], longest: int, depth: int) -> list[Tokens]:
    """Return up to ``depth`` tokens after each earlier occurrence of the longest suffix that occurs; [] if none does.

    A suffix has at most ``longest`` tokens. It is looked up in ``texts`` and in ``tokens`` itself.
    """
    for length in range(min(longest, len(tokens)), 0, -1):
        suffix = tokens[len(tokens) - length :]
        result = [
            text[start + length : start + length + depth]
            for text in (*texts, tokens)
            for start in range(len(text) - length)
            if text[start : start + length] == suffix
        ]
        if result:
            return result
    return []


def retrieved(tokens: Tokens, texts: tuple[Tokens, ...], longest: int, depth: int, nodes: int) -> list[Tokens]:
    """Return the ``nodes`` most frequent beginnings of the retrieved continuations of ``tokens``.

    The continuations are those of ``continuations``, with the same parameters. Ties go to the shorter beginning, then
    to the one found first.
    """
    counts: dict[Tokens, int] = {}
    result = continuations(tokens, texts, longest, depth)
    for start in chain.from_iterable((path[:end] for end in range(1, len(path) + 1)) for path in result):
        counts[start] = counts.get(start, 0) + 1
    return sorted(counts, key=lambda start: (-counts[start], len(start)))[:nodes]


def retrieval_drafter(texts: tuple[Tokens, ...], longest: int, depth: int, nodes: int) -> Drafter:
    """Return a drafter of the continuations that ``retrieved`` finds in ``texts`` and in the text so far.

    Raises ``ValueError`` unless ``longest`` and ``nodes`` are >= 1 and ``depth`` >= 0.
    """
    if longest < 1 or nodes < 1 or depth < 0:
        raise ValueError(f"longest is {longest}, nodes {nodes}, depth {depth}, expected at least 1, 1 and 0")
    return paths_drafter(lambda prefix, gamma: retrieved(prefix, texts, longest, min(depth, gamma), nodes))
