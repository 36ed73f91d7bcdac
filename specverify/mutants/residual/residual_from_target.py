"""After a rejection the token is drawn from p instead of norm((p - q)+): the output is min(p, q) + TV(p, q) p."""

from __future__ import annotations

from reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip
from specverify.mutants.mutant import planted, with_verifier


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with the wrong replacement."""
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        if not flip(draws, accept_probability(p, draft.pmfs[i], token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(p, ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "residual-from-target",
    "a rejection draws from p, not the residual",
    with_verifier(verify),
    category="C",
    citation="rtp-llm commit 2d9860463; romsto/Speculative-Decoding commits 53922df, 0b1fa52 (skip_sample_adjustment)",
    killed_by="law_is_target",
    examples=({"gamma": 1}, {"gamma": 2}),
)
