"""The ratio is upside down: a draft is accepted with probability min(1, q/p)."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip, residual


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with p and q exchanged in the coin."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(q, p, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "inverted-ratio",
    "accepts with probability min(1, q/p)",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
