"""Number the tokens of a program with large ids 0, 1, ..., so that its rows are short enough to be read and compared.

A program with the ids of a real tokenizer has rows of 100,000 entries, of which a law that can be enumerated uses a
few. All ids that occur in texts, and all that a draw over the whole vocabulary can return, are numbered in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from specverify.laws.draws import Decision
from specverify.laws.paths import Path, Undecided, outcomes_of
from specverify.reference import Tokens

LARGEST_ID = 63
"""Ids up to this one are kept."""
MOST_IDS = 64


class NumberedTokens(NamedTuple):
    """The ids of a program that are numbered, in order: the number of an id is its index."""

    ids: tuple[int, ...]

    def law(self, law: Mapping[Any, Any]) -> dict[Tokens, Any]:
        """Return ``law``, a law of texts, with numbers in place of ids."""
        return {self._text(text): mass for text, mass in law.items()}

    def path(self, path: Path[Any]) -> Path[Any]:
        """Return ``path`` with numbers in place of ids, in its outcome and in the draws over the whole vocabulary."""
        decisions = tuple(map(self._decision, path.decisions))
        choices = tuple(decision.outcome for decision in decisions)
        return path._replace(outcome=self._end(path.outcome), choices=choices, decisions=decisions)

    @property
    def legend(self) -> str:
        """Return words such as "token 0 stands for id 151000, 1 for 151001"."""
        first, *others = (f"{number} {{}}for id {token}" for number, token in enumerate(self.ids))
        return ", ".join([f"token {first.format('stands ')}", *(other.format("") for other in others)])

    def _text(self, text: Tokens) -> Tokens:
        return tuple(self.ids.index(token) for token in text)

    def _end(self, end: Any) -> Any:
        if isinstance(end, Undecided):
            return Undecided(tuple((self._text(text), share) for text, share in end.outcomes))
        return self._text(end)

    def _decision(self, decision: Decision) -> Decision:
        if len(decision.weights) <= self.ids[-1]:
            return decision
        weights = tuple(decision.weights[token] for token in self.ids)
        return decision._replace(weights=weights, outcome=self.ids.index(decision.outcome))


def numbered_tokens(laws: Iterable[Mapping[Any, Any]], paths: Iterable[Path[Any]]) -> NumberedTokens | None:
    """Return the numbers of the ids in ``laws`` and ``paths`` of a program; None if the ids are small, or too many.

    ``laws`` are laws of texts. Returns None also if a token is no integer of at least 0.
    """
    texts = [text for law in laws for text in law]
    if not all(type(token) is int and token >= 0 for text in texts for token in text):
        return None
    ids = {token for text in texts for token in text}
    largest, seen = max(ids, default=0), set[tuple[int, ...]]()
    if largest <= LARGEST_ID or len(ids) > MOST_IDS:
        return None
    for path in paths:
        ids |= {token for text, _ in outcomes_of(path.outcome) for token in text}
        for number, decision in enumerate(path.decisions):
            before = path.choices[:number]
            if len(decision.weights) > largest and before not in seen:
                seen.add(before)
                ids.update(np.flatnonzero(np.asarray(decision.weights, dtype=float)).tolist())
        if len(ids) > MOST_IDS:
            return None
    return NumberedTokens(tuple(sorted(ids)))
