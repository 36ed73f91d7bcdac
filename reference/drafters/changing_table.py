"""A drafter that learns while it drafts (online speculative decoding, Liu et al. 2310.07177).

Where a draft was rejected, the context and the target's row go into a buffer; every ``interval`` rounds the buffer
teaches the drafter, entry by entry, and is emptied. The learned part is a table of rows by the last ``order`` tokens,
which takes precedence over the original model; it is hashable and part of the decoder's state. A learned row is used
for all contexts with equal last tokens, as a small model generalises: where their targets differ, alpha may fall and
the law stays exact.

Exact at every moment, for any update: q changes between rounds alone, so the rows that a draft declares are the rows it
was drawn from. ``mixture_step`` is the update that stays rational, (1 - eta) q + eta p; ``gradient_step`` is one step
of a softmax. The paper updates every few iterations of its serving loop; that it does so between requests, and the
order of the entries within an update, could not be confirmed. Rounds are the finest grain there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from array_api_compat import array_namespace

from ..parameters import parameter
from ..types import LanguageModel, Pmf, Tokens
from ..warpers import softmax
from .distillation import Divergence, gradient

TableRows: TypeAlias = tuple[tuple[Tokens, tuple[Any, ...]], ...]
"""Pairs of tokens and the entries of a pmf."""
Update: TypeAlias = Callable[[Pmf, Pmf], Pmf]
"""``update(q, p)``: the drafter's row after it was shown the target's."""


class Learned(NamedTuple):
    """The state of the drafter: what it learned, and its buffer."""

    table: TableRows = ()
    """Last tokens -> the row drafted from behind them, in order of the tokens."""
    buffer: TableRows = ()
    """(context, p) of the rejections since the last update, oldest first."""
    rounds: int = 0
    """Rounds since the last update."""


def mixture_step(eta: Any) -> Update:
    """Return ``q <- (1 - eta) q + eta p``. TV(p, q) shrinks by 1 - eta. ``ValueError`` unless 0 <= eta <= 1."""
    if not 0 <= eta <= 1:
        raise ValueError(f"eta is {eta}, expected a share in [0, 1] (0 learns nothing, 1 copies the target's row)")
    return lambda q, p: (1 - parameter(eta, q)) * q + parameter(eta, q) * p


def gradient_step(divergence: Divergence, rate: float) -> Update:
    """Return one gradient step of size ``rate`` on the logits of q: float64, and for rows without zeros."""

    def update(q: Pmf, p: Pmf) -> Pmf:
        logits = np.log(q)
        return softmax(logits - rate * gradient(divergence, p, logits))

    return update


def learned_model(draft: LanguageModel, learned: Learned, order: int) -> LanguageModel:
    """Return the drafter as it is now: a learned row where there is one for the last ``order`` tokens, else q."""
    rows = dict(learned.table)

    def now(tokens: Tokens) -> Pmf:
        q = draft(tokens)
        row = rows.get(tokens[-order:])
        return q if row is None else _as_array(row, q)

    return now


def buffered(learned: Learned, context: Tokens, p: Pmf) -> Learned:
    """Return the state after recording the target's row ``p`` for a draft rejected after ``context``."""
    return learned._replace(buffer=(*learned.buffer, (context, tuple(p.tolist()))))


def after_round(learned: Learned, draft: LanguageModel, update: Update, interval: int, order: int) -> Learned:
    """Return the state after a round; every ``interval`` rounds the buffer updates the table and is emptied."""
    if learned.rounds + 1 < interval:
        return learned._replace(rounds=learned.rounds + 1)
    table = dict(learned.table)
    for context, row in learned.buffer:
        q = learned_model(draft, Learned(tuple(table.items())), order)(context)
        table[context[-order:]] = tuple(update(q, _as_array(row, q)).tolist())
    return Learned(tuple(sorted(table.items())))


def _as_array(row: tuple[Any, ...], like: Pmf) -> Pmf:
    if like.dtype == object:
        return np.array(row, dtype=object)
    return array_namespace(like).asarray(row, dtype=like.dtype, device=like.device)
