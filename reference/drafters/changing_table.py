"""A drafter that learns while it drafts (online speculative decoding, Liu et al. 2310.07177).

If a draft is rejected, the context and the target's row go into a buffer. Every ``interval`` rounds the drafter learns
from the buffer, entry by entry, and the buffer is emptied. The learned part is a table of rows, indexed by the last
``order`` tokens, which takes precedence over the original model; it is hashable and part of the decoder's state. A
learned row is used for all contexts with equal last tokens, as a small model generalises. If their targets differ, the
acceptance may fall, but the law stays exact.

The output is exact at every moment, for any update: q changes only between rounds, so a draft is verified with the rows
from which it was drawn. ``mixture_step`` is an update that stays rational, (1 - eta) q + eta p; ``gradient_step`` is
one gradient step of a softmax.

The paper updates every few iterations of its serving loop. Not confirmed: whether it does so between requests, and in
which order an update takes the entries. Here the smallest interval is one round.
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
"""Pairs (context tokens, entries of the pmf of the next token)."""
Update: TypeAlias = Callable[[Pmf, Pmf], Pmf]
"""``update(q, p)``: the drafter's new row, given its row ``q`` and the target's row ``p`` for the same context."""


class Learned(NamedTuple):
    """The state of the drafter: the table of learned rows, and the buffer of rejections."""

    table: TableRows = ()
    """Pairs (last tokens, pmf of the next draft), sorted by tokens."""
    buffer: TableRows = ()
    """Pairs (context, p) of the rejections since the last update, oldest first."""
    rounds: int = 0
    """Number of rounds since the last update."""


def mixture_step(eta: Any) -> Update:
    """Return the update ``q <- (1 - eta) q + eta p``, by which TV(p, q) shrinks by the factor 1 - eta.

    Raises ``ValueError`` unless 0 <= eta <= 1.
    """
    if not 0 <= eta <= 1:
        raise ValueError(f"eta is {eta}, expected a share in [0, 1] (0 learns nothing, 1 copies the target's row)")
    return lambda q, p: (1 - parameter(eta, q)) * q + parameter(eta, q) * p


def gradient_step(divergence: Divergence, rate: float) -> Update:
    """Return the update that is one gradient step of size ``rate`` on the logits of q, in float64.

    The step lowers ``divergence``. Rows must not contain zeros.
    """

    def update(q: Pmf, p: Pmf) -> Pmf:
        logits = np.log(q)
        return softmax(logits - rate * gradient(divergence, p, logits))

    return update


def learned_model(draft: LanguageModel, learned: Learned, order: int) -> LanguageModel:
    """Return the current model of the drafter, whose state is ``learned``.

    Its pmf is the learned row of the last ``order`` tokens, or that of ``draft`` if there is none.
    """
    rows = dict(learned.table)

    def now(tokens: Tokens) -> Pmf:
        q = draft(tokens)
        row = rows.get(tokens[-order:])
        return q if row is None else _as_array(row, q)

    return now


def buffered(learned: Learned, context: Tokens, p: Pmf) -> Learned:
    """Return the state ``learned`` with the target's row ``p`` added to its buffer.

    A draft was rejected after the text ``context``, and p is the row there.
    """
    return learned._replace(buffer=(*learned.buffer, (context, tuple(p.tolist()))))


def after_round(learned: Learned, draft: LanguageModel, update: Update, interval: int, order: int) -> Learned:
    """Return the state that follows ``learned`` after a round.

    In every ``interval``-th round the table learns from the buffer, which is then emptied. For each rejection in the
    buffer, ``update(q, p)`` becomes the row of the last ``order`` tokens before the rejection; q is the row so far, at
    first that of ``draft``.
    """
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
