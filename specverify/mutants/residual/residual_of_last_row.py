"""After a rejection the last row of p is used, whatever was rejected."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip, residual


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling whose residual takes p behind the whole block."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified(
                (*draft.tokens[:i], draws.categorical(residual(target(prefix + draft.tokens), q), ("residual", i))),
                accepted=i,
            )
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "residual-of-last-row",
    "replaces from the last row of p",
    with_verifier(verify),
    category="C",
    citation="romsto/Speculative-Decoding commit 53922df",
    killed_by="law_is_target",
    examples=SHORT,
)
