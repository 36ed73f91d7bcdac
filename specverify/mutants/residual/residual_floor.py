"""The residual is clamped at a small positive number instead of 0: forbidden tokens are recovered now and then."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip
from specverify.mutants.mutant import SHORT, planted, with_verifier

FLOOR = Fraction(1, 2**23)


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with a floor under every residual entry."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            excess = np.maximum(p - q, p * 0 + FLOOR if p.dtype == object else float(FLOOR))
            return Verified((*draft.tokens[:i], draws.categorical(excess / excess.sum(), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "residual-floor",
    "clamps the residual at epsilon, not at 0",
    with_verifier(verify),
    category="C",
    citation="ScaleLLM PR #202 (6dd58279)",
    killed_by="tokens_are_supported",
    examples=SHORT,
)
