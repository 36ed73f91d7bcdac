"""The residual is |p - q| instead of its positive part: what q has too much of comes back."""

from __future__ import annotations

from reference import Draft, Draws, LanguageModel, Pmf, Tokens, Verified, accept_probability, flip
from specverify.mutants.mutant import SHORT, planted, with_verifier


def distance(p: Pmf, q: Pmf) -> Pmf:
    """Return ``norm(|p - q|)``."""
    return abs(p - q) / abs(p - q).sum()


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with |p - q|."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(distance(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "residual-absolute",
    "replaces from |p - q|",
    with_verifier(verify),
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
