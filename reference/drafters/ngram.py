"""An n-gram table as drafter: no parameters, no randomness (NASD; Ou et al. 2404.08698, Section 3, for NAPD).

An n-gram is a context of n-1 tokens and the token that follows it: a bigram has a context of one token. The table
counts in contexts of the lengths it is made for, from the prompt and from what is committed. It backs off per context:
the longest context that has been seen at all decides. A context nobody has seen proposes nothing, so the draft ends
there and gamma shrinks. Ties go to the lowest or to the highest token id, as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from reference.pmf import top_tokens
from reference.types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain


class _Counts(dict[Tokens, Mapping[int, int]]):
    """A dictionary that is never changed after it was built, so it has a hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset((context, frozenset(row.items())) for context, row in self.items()))


class NgramTable(NamedTuple):
    """Immutable counts ``context -> token -> count`` for contexts of the given lengths, longest first."""

    context_lengths: tuple[int, ...]
    counts: Mapping[Tokens, Mapping[int, int]] = _Counts()

    def observe(self, tokens: Tokens, start: int = 1) -> NgramTable:
        """Return the table with ``tokens[start:]`` counted, each in all its contexts."""
        return self.count_each((tokens[:position], tokens[position]) for position in range(max(start, 1), len(tokens)))

    def count_each(self, pairs: Iterable[tuple[Tokens, int]]) -> NgramTable:
        """Return the table with every ``(history, token)`` of an iterable counted once in each context."""
        counts = _Counts(self.counts)
        for history, token in pairs:
            for length in self.context_lengths:
                if length <= len(history):
                    context = history[len(history) - length :]
                    row = counts.get(context, {})
                    counts[context] = {**row, token: row.get(token, 0) + 1}
        return self._replace(counts=counts)

    def predict(self, history: Tokens, highest_id: bool = False) -> int | None:
        """Return the most frequent successor of the longest context seen, or None if no context was seen."""
        for length in self.context_lengths:
            row = self.counts.get(history[len(history) - length :]) if length <= len(history) else None
            if row:
                most = max(row.values())
                tied = [token for token, count in row.items() if count == most]
                return max(tied) if highest_id else min(tied)
        return None


def ngram_table(order: int, backoff: bool = True) -> NgramTable:
    """Return an empty table of n-grams up to ``order`` (2 = bigrams): all orders down to 2, or that one alone.

    Raises ``ValueError`` for an order below 2: a unigram has no context to look up.
    """
    if order < 2:
        raise ValueError(f"n-gram order is {order}, expected at least 2 (a context of one token and its successor)")
    return NgramTable(tuple(range(order - 1, 0, -1)) if backoff else (order - 1,))


def ngram_drafter(table: NgramTable, filler_top_k: int = 1, highest_id: bool = False) -> Drafter:
    """Draft the table's predictions. Each draft is a point mass: it was drawn from nothing else.

    ``filler_top_k`` > 1 also counts, at every committed position, the target's k most probable tokens there; the
    committed token itself is counted once, not twice. Raises ``ValueError`` if it is below 1.
    """
    if filler_top_k < 1:
        raise ValueError(f"filler_top_k is {filler_top_k}, expected at least 1 (1 counts committed tokens only)")

    def propose(
        draws: Draws, state: NgramTable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        drafted: Tokens = ()
        while len(drafted) < gamma:
            token = state.predict(prefix + drafted, highest_id)
            if token is None:
                break
            drafted = (*drafted, token)
        return chain(drafted, (None,) * len(drafted))

    def observe(state: NgramTable, tokens: Tokens, start: int, target: LanguageModel) -> NgramTable:
        pairs = []
        for position in range(start, len(tokens)):
            history = tokens[:position]
            likely = top_tokens(target(history), filler_top_k) if filler_top_k > 1 else ()
            pairs += [(history, token) for token in sorted({tokens[position], *likely})]
        return state.count_each(pairs)

    return Drafter(init=table.observe, propose=propose, observe=observe)
