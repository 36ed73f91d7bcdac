"""The residual is loaded from the first row of the block instead of the rejected position's: right at position 0."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip, residual


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with the residual of position 0."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified(
                (*draft.tokens[:i], draws.categorical(residual(target(prefix), draft.pmfs[0]), ("residual", i))),
                accepted=i,
            )
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "residual-of-first-row",
    "replaces every draft from row 0",
    with_verifier(verify),
    category="C",
    citation="FlashInfer PR #425 (04e753c77)",
    killed_by="law_is_target",
    examples=SHORT,
)
