"""Speculative sampling (Leviathan et al. 2211.17192, Algorithm 1; Chen et al. 2302.01318, Algorithm 2).

Lossless for all p and q, with the largest acceptance that one drafted token per position allows (a maximal coupling).
"""

from __future__ import annotations

from ..coupling import accept_probability, excess_law, flip
from ..pmf import one_hot
from ..types import Draft, Draws, LanguageModel, Tokens, Verified


def speculative_sampling(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Accept each draft with probability min(1, p/q); at the first rejection emit from norm((p - q)+)."""
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        pmf = draft.pmfs[i]
        q = one_hot(token, like=p) if pmf is None else pmf
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            replacement = draws.categorical(excess_law(p, q), ("residual", i))
            return Verified((*draft.tokens[:i], replacement), accepted=i)
    bonus = draws.categorical(target(prefix + draft.tokens), ("bonus",))
    return Verified((*draft.tokens, bonus), accepted=len(draft.tokens))
