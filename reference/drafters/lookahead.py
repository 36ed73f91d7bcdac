"""Lookahead's window and pool (Fu et al. 2402.02057, Sections 3.1 to 3.3): n-grams from Jacobi iteration.

The window has N - 1 rows of W guesses. Row 0 begins with the last known token; the guess in row r, column i stands i +
r positions after it. A step computes one more guess for every column: the target's argmax after the text, the tokens of
row 0 up to this column, and the other guesses of the column. A column with its new guess is an n-gram for the pool.
Then the oldest row is removed. The window moves on by one position, however many tokens were committed. The pool keeps,
for each first token, the G n-grams used last. All this is computed in the pass that verifies, so candidates depend on
the past alone; nothing is drawn.

In the released code row 0 starts with W + N - 3 tokens picked from the prompt at random; here they are taken from it in
turn. The first N - 2 steps only fill the window.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle, islice
from typing import NamedTuple, TypeAlias

from ..pmf import argmax
from ..trees import deterministic_draft, merged
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens

Pool: TypeAlias = tuple[Tokens, ...]
"""N-gram phrases, least recently used first; a phrase is looked up by its first token."""


class Lookahead(NamedTuple):
    """The state of the drafter: the window of guessed tokens, oldest row first, and the pool of n-grams.

    The rows do not contain the last known token.
    """

    rows: tuple[Tokens, ...]
    pool: Pool = ()


def with_phrase(pool: Pool, phrase: Tokens, most: int) -> Pool:
    """Return the pool with ``phrase`` as its most recent phrase.

    Of the phrases with the same first token, the ``most`` most recent are kept.
    """
    kept = (*_without(pool, phrase), phrase)
    alike = [other for other in kept if other[0] == phrase[0]]
    return kept if len(alike) <= most else _without(kept, alike[0])


def _without(pool: Pool, phrase: Tokens) -> Pool:
    """Return the pool without the oldest entry that equals ``phrase``."""
    place = pool.index(phrase) if phrase in pool else len(pool)
    return pool[:place] + pool[place + 1 :]


def phrases_after(pool: Pool, last: int, longest: int) -> list[Tokens]:
    """Return the tokens after ``last`` in each phrase of the pool that begins with it, the oldest phrase first.

    At most ``longest`` tokens of a phrase are returned.
    """
    return [phrase[1 : 1 + longest] for phrase in pool if phrase[0] == last]


def lookahead_drafter(width: int, order: int, guesses: int) -> Drafter:
    """Return a drafter of those n-grams of the pool that begin with the last token, at most ``guesses`` of them.

    An n-gram has ``order`` tokens; the window has ``width`` columns (0: no drafts). Raises ``ValueError`` unless width
    >= 0, order >= 2 and guesses >= 1.
    """
    if width < 0 or order < 2 or guesses < 1:
        raise ValueError(f"width is {width}, order {order}, guesses {guesses}, expected at least 0, 2 and 1")

    def init(prompt: Tokens) -> Lookahead:
        return Lookahead((tuple(islice(cycle(prompt), width + order - 3)),) if width else ())

    def propose(
        draws: Draws, state: Lookahead, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]
    ) -> Draft:
        return deterministic_draft(merged(phrases_after(state.pool, prefix[-1], gamma)))

    def observe(state: Lookahead, tokens: Tokens, start: int, target: LanguageModel) -> Lookahead:
        if not state.rows:
            return state
        text, rows = tokens[: start - 1], ((tokens[start - 1], *state.rows[0]), *state.rows[1:])
        columns = [tuple(row[i] for row in rows[1:]) for i in range(len(rows[-1]))]
        new = tuple(argmax(target(text + rows[0][: i + 1] + column)) for i, column in enumerate(columns))
        if len(rows) < order - 1:
            return state._replace(rows=(*(row[1:] for row in state.rows), new[1:]))
        pool = state.pool
        for i, column in enumerate(columns):
            pool = with_phrase(pool, (rows[0][i], *column, new[i]), guesses)
        shifted = (*rows[1:], new)
        return Lookahead((shifted[0][1:], *shifted[1:]), pool)

    return Drafter(init=init, propose=propose, observe=observe)
