"""An n-gram table as drafter: no parameters, no randomness (NASD; Ou et al. 2404.08698, Section 3, for NAPD).

An n-gram is a context of n-1 tokens and the token that follows it: a bigram has a context of one token. The table
counts in contexts of fixed lengths, from the prompt and the committed text. The longest context that has occurred
decides (backoff). An unseen context predicts nothing, so the draft ends there and is shorter than gamma.

Two tokens may have the same count in a context. NASD predicts the one that reached this count first
(romsto/Speculative-Decoding at db7db67, ``ngram_storage.py``, lines 127 and 220: only a larger count replaces the
prediction). NAPD predicts the one whose first occurrence is later, because it takes the last entry of an argsort of the
counts, in order of first occurrence (oujieww/ANPD at 19b2e5a, ``base_ngram.py``, ``NGramModel.forward``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ..pmf import top_tokens
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain
from ..validation import check_instance, check_integer


class Row(dict[int, int]):
    """Counts of the tokens that followed one context: token -> count.

    The order of the entries decides between equal counts. So two rows with the same counts in another order are
    unequal.
    """

    def __eq__(self, other: object) -> bool:
        return dict.__eq__(self, other) and (not isinstance(other, Row) or list(self) == list(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class _Counts(dict[Tokens, Row]):
    """A dictionary that is never changed after its construction, so it can be hashed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


class NgramTable(NamedTuple):
    """Immutable counts of the tokens that followed each context: ``counts[context][token]``.

    Contexts have the lengths in ``context_lengths``, which lists the longest first.
    """

    context_lengths: tuple[int, ...]
    newest: bool = False
    """How ties between continuations of equal count are broken. True: the token first seen last (NAPD). False: the
    token that reached the count first (NASD)."""
    counts: Mapping[Tokens, Row] = _Counts()

    def observe(self, tokens: Tokens, start: int = 1) -> NgramTable:
        """Return the table in which each token of ``tokens[start:]`` is also counted, as by ``count_each``.

        The first token of a text is not counted, because nothing precedes it.
        """
        return self.count_each((tokens[:position], tokens[position]) for position in range(max(start, 1), len(tokens)))

    def count_each(self, pairs: Iterable[tuple[Tokens, int]]) -> NgramTable:
        """Return the table with every pair ``(history, token)`` counted, one after the other.

        The token is counted once for each of the ``context_lengths``, in the context of that many last tokens of
        ``history``. Lengths above that of ``history`` are left out.
        """
        counts = _Counts(self.counts)
        for history, token in pairs:
            for length in self.context_lengths:
                if length <= len(history):
                    context = history[len(history) - length :]
                    counts[context] = self._counted(counts.get(context, Row()), token)
        return self._replace(counts=counts)

    def _counted(self, row: Row, token: int) -> Row:
        """Return the row with ``token`` counted once more.

        The order of the row decides ties. With ``newest``, the token keeps its place; otherwise it moves behind all
        tokens that already had its new count.
        """
        if self.newest:
            return Row({**row, token: row.get(token, 0) + 1})
        others = {other: count for other, count in row.items() if other != token}
        return Row({**others, token: row.get(token, 0) + 1})

    def predict(self, history: Tokens) -> int | None:
        """Return the most frequent token after ``history``, by the longest context that has occurred; None if none has.

        A context is the last tokens of ``history``, as many as one of the ``context_lengths``.
        """
        for length in self.context_lengths:
            row = self.counts.get(history[len(history) - length :]) if length <= len(history) else None
            if row:
                most = max(row.values())
                tied = [token for token, count in row.items() if count == most]
                return tied[-1] if self.newest else tied[0]
        return None


def ngram_table(order: int, backoff: bool = True, newest: bool = False) -> NgramTable:
    """Return an empty table of n-grams.

    With ``backoff`` it has all orders from 2 (bigrams) to ``order``, otherwise ``order`` alone. Of two tokens with
    equal counts it predicts the one that reached the count first, or with ``newest`` the one whose first occurrence is
    the latest. Raises ``ValueError`` for an order below 2.
    """
    check_integer(order, "n-gram order", least=2)
    return NgramTable(tuple(range(order - 1, 0, -1)) if backoff else (order - 1,), newest)


def ngram_drafter(table: NgramTable, filler_top_k: int = 1) -> Drafter:
    """Return a drafter that drafts the predictions of ``table`` as point masses.

    The table counts every committed token and, if ``filler_top_k`` is above 1, also the target's ``filler_top_k`` most
    probable tokens there. Raises ``ValueError`` for a ``filler_top_k`` below 1, or for no table.
    """
    check_instance(table, "table", NgramTable)
    check_integer(filler_top_k, "filler_top_k")

    def propose(
        draws: Draws, state: NgramTable, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        drafted: Tokens = ()
        while len(drafted) < gamma:
            token = state.predict(prefix + drafted)
            if token is None:
                break
            drafted = (*drafted, token)
        return chain(drafted, (None,) * len(drafted))

    def observe(state: NgramTable, tokens: Tokens, start: int, target: LanguageModel) -> NgramTable:
        pairs = []
        for position in range(start, len(tokens)):
            history = tokens[:position]
            likely = top_tokens(target(history), filler_top_k) if filler_top_k > 1 else ()
            pairs += [(history, token) for token in (tokens[position], *likely)]
        return state.count_each(pairs)

    return Drafter(init=table.observe, propose=propose, observe=observe)
