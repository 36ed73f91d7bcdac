"""A drafter that computes all rows of a block at once and samples them; the q of each token is its own row.

The rows of a parallel drafter are functions of the text alone (DFlash, 2602.06036). DSpark (2607.05147) adds to the
logits of each row a bias that depends on the token before it (a Markov head), so it samples one token after another.
The block ends before the first slot with a low confidence, which depends on the row of the slot, not on its draft.

The trained network is replaced by the draft model. Row i is q after the text and i argmaxes of q that follow it. The
row is multiplied by the bias: q after the previous token alone. The confidence of a slot is the largest entry of its
row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..parameters import parameter
from ..pmf import argmax
from ..types import Draft, Drafter, Draws, LanguageModel, Pmf, Tokens, chain
from .heads import stand_in_head
from .model import stateless


def biased_row(row: Pmf, bias: Pmf) -> Pmf:
    """Return the normalised product ``row * bias`` (a sum of logits), or ``row`` if the product is 0 everywhere."""
    product = row * bias
    mass = product.sum()
    return product / mass if mass > 0 else row


def argmaxes_of_rows(draft: LanguageModel, prefix: Tokens, count: int) -> Draft:
    """Return a draft of ``count`` tokens after ``prefix``: the argmax of each of ``count`` independent rows.

    The pmf of each token in the draft is its row.
    """
    rows = tuple(stand_in_head(draft, slot)(prefix) for slot in range(count))
    return chain(tuple(argmax(row) for row in rows), rows)


def block_rows_drafter(draft: LanguageModel, block: int, markov: bool, least: Any = 0) -> Drafter:
    """Return a drafter of at most ``block`` tokens, which ends before the first slot with a confidence below ``least``.

    With ``markov`` each row is biased by the token before it; otherwise the rows depend on the text alone.
    """

    def propose(draws: Draws, _: object, prefix: Tokens, gamma: int, stop_after: Callable[[Pmf, int], bool]) -> Draft:
        drafted: Tokens = ()
        pmfs: tuple[Pmf, ...] = ()
        for slot in range(min(block, gamma)):
            row = stand_in_head(draft, slot)(prefix)
            q = biased_row(row, draft((prefix + drafted)[-1:])) if markov else row
            if q.max() < parameter(least, q):
                break
            token = draws.categorical(q, ("draft", slot))
            drafted, pmfs = (*drafted, token), (*pmfs, q)
        return chain(drafted, pmfs)

    return Drafter(init=stateless, propose=propose, observe=stateless)
