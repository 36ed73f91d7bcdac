"""A small language model of letters, trained in memory on Python's own source code by counting contexts.

Contexts of all lengths are blended by the rule of Witten and Bell (IEEE Transactions on Information Theory 37, 1991):
p_k(v) = (c_k(v) + T_k p_{k-1}(v)) / (N_k + T_k), with c_k the counts after the last k letters, N_k their sum, T_k the
number of distinct successors, and p_{-1} uniform. Nothing is downloaded and nothing is stored.
"""

from __future__ import annotations

import importlib.util
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from specverify.reference import LanguageModel, Pmf, Tokens

LONGEST = 5
"""Number of letters of the longest context whose successors are counted."""


class Letters(NamedTuple):
    """The letters of a training text (``alphabet``), and the counts of each letter after each context (``counts``)."""

    alphabet: tuple[str, ...]
    counts: dict[str, Counter[str]]

    def tokens(self, text: str) -> Tokens:
        """Return ``text`` as tokens: positions of its letters in the alphabet.

        Raises ``ValueError`` for a letter outside the alphabet.
        """
        strange = sorted(set(text).difference(self.alphabet))
        if strange:
            raise ValueError(f"the alphabet lacks {strange}: expected letters of the texts it was made of")
        place = {letter: token for token, letter in enumerate(self.alphabet)}
        return tuple(place[letter] for letter in text)

    def text(self, tokens: Iterable[int]) -> str:
        """Return the text that ``tokens`` stand for: token i is the i-th letter of the alphabet."""
        return "".join(self.alphabet[token] for token in tokens)


def source_of(module: str) -> str:
    """Return the source code of a module of the standard library. Raises ``ValueError`` if it has none."""
    result = importlib.util.find_spec(module)
    if result is None or result.origin is None or not result.origin.endswith(".py"):
        raise ValueError(f"{module} has no source code here: expected a module of Python written in Python")
    return Path(result.origin).read_text(encoding="utf-8")


def trained(text: str, *others: str) -> Letters:
    """Return the letters of the training text ``text``, with the counts of letters after each context.

    The alphabet also contains the letters of ``others``, which are not counted.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for end, letter in enumerate(text):
        for length in range(min(LONGEST, end) + 1):
            counts[text[end - length : end]][letter] += 1
    return Letters(tuple(sorted(set(text).union(*others))), dict(counts))


def letter_model(letters: Letters, longest: int, reads: int) -> LanguageModel:
    """Return the model ``tokens -> pmf [alphabet]`` with contexts of at most ``longest`` letters.

    The count of a letter after a context is that in the training text, plus ``reads`` for each occurrence in the text
    so far.
    """
    place = {letter: token for token, letter in enumerate(letters.alphabet)}

    @cache
    def row(tokens: Tokens) -> Pmf:
        text = letters.text(tokens)
        pmf = np.full(len(place), 1 / len(place))
        for length in range(min(longest, len(text)) + 1):
            result = _successors(letters, text, length, reads)
            if result:
                weights = np.zeros(len(place))
                weights[[place[letter] for letter in result]] = list(result.values())
                pmf = (weights + len(result) * pmf) / (weights.sum() + len(result))
        return pmf

    return row


def _successors(letters: Letters, text: str, length: int, reads: int) -> Counter[str]:
    """Return the counts of each letter after the last ``length`` letters, in the training text and in ``text`` itself.

    An occurrence in ``text`` counts ``reads`` times.
    """
    context = text[len(text) - length :]
    result = Counter(letters.counts.get(context, ()))
    at = text.find(context) if reads and length else -1
    while -1 < at < len(text) - length:
        result[text[at + length]] += reads
        at = text.find(context, at + 1)
    return result
