"""The residual is (q - p)+: a rejected draft is replaced by what q has too much of already."""

from __future__ import annotations

from reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip, residual
from specverify.mutants.mutant import SHORT, planted, with_verifier


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with p and q exchanged in the residual."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(q, p), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "residual-exchanged",
    "replaces from (q - p)+",
    with_verifier(verify),
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
