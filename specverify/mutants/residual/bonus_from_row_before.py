"""The token after the last draft is drawn from the row that judged it."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip, residual


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling whose bonus row is one early."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified(
        (*draft.tokens, draws.categorical(target(prefix + draft.tokens[:-1]), ("bonus",))), len(draft.tokens)
    )


MUTANT = planted(
    "speculative-sampling",
    "bonus-from-row-before",
    "draws the bonus from the last draft's row",
    with_verifier(verify),
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
