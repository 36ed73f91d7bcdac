"""Drop drafts of low probability under q, with a residual that keeps the rule lossless.

Dropping d if q(d) < threshold and then drawing from p is biased, because the token itself decides whether it is kept.
The correction: only the part ``q 1[q >= threshold]`` of q proposes tokens; its mass is below 1. Whether a draft was
dropped or rejected, the token comes from ``norm((p - q 1[q >= threshold])+)``. So the verifier needs the whole row of
q, not only q of the kept drafts. This is lossless for all p and q; a draft is accepted with probability ``sum min(p,
q)`` over the tokens not dropped.
"""

from __future__ import annotations

from typing import Any

from ..coupling import accept_probability, excess_law, flip
from ..parameters import parameter
from ..pmf import one_hot
from ..types import Draft, Draws, LanguageModel, Tokens, Verified, Verifier


def drop_unlikely(threshold: Any) -> Verifier:
    """Return the verifier that drops every draft d with q(d) < ``threshold``, also if p(d) is large.

    Other drafts are accepted with probability ``min(1, p/q)``. A dropped or rejected draft is replaced by a draw from
    ``norm((p - q 1[q >= threshold])+)``.
    """

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        for i, token in enumerate(draft.tokens):
            p, pmf = target(prefix + draft.tokens[:i]), draft.pmfs[i]
            q = one_hot(token, like=p) if pmf is None else pmf
            kept = q * (q >= parameter(threshold, q))
            if not (kept[token] > 0 and flip(draws, accept_probability(p, q, token), ("accept", i))):
                replacement = draws.categorical(excess_law(p, kept), ("residual", i))
                return Verified((*draft.tokens[:i], replacement), accepted=i)
        bonus = draws.categorical(target(prefix + draft.tokens), ("bonus",))
        return Verified((*draft.tokens, bonus), accepted=len(draft.tokens))

    return verify
