"""Greedy match: accept drafts while they are the target's argmax. The output is that of greedy decoding.

This holds for any drafter. The rule is speculative sampling with one-hot target rows (Leviathan et al. 2211.17192,
Section 2.2). Ties go to the lowest id.
"""

from __future__ import annotations

from ..pmf import argmax
from ..types import Draft, Draws, LanguageModel, Tokens, Verified


def greedy_match(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Emit the target's argmax at every row, up to and including the first that differs from its draft; draws nothing.

    If all drafts match, the argmax of the row after them is emitted too.
    """
    emitted: Tokens = ()
    for token in draft.tokens:
        best = argmax(target(prefix + emitted))
        emitted = (*emitted, best)
        if best != token:
            return Verified(emitted, accepted=len(emitted) - 1)
    return Verified((*emitted, argmax(target(prefix + emitted))), accepted=len(emitted))
