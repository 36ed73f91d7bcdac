"""The declared bias is not the one it has: a guess is kept if it is among the target's two most probable tokens."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, top_tokens


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """The seed rule with a laxer test than it declares."""
    accepted = 0
    while accepted < len(draft.tokens):
        if draft.tokens[accepted] not in top_tokens(target(prefix + draft.tokens[:accepted]), 2):
            break
        accepted += 1
    kept = draft.tokens[:accepted]
    return Verified((*kept, draws.categorical(target(prefix + kept), ("target", accepted))), accepted)


MUTANT = planted(
    "nasd-seed-rule",
    "seed-rule-top-two",
    "keeps guesses among the two most probable",
    with_parts("nasd-seed-rule", verifier=verify),
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
