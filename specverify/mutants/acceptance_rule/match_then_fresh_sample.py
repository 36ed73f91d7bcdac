"""The draw that misses the n-gram guess is thrown away and p is drawn again: out(d) = 2 p(d) - p(d)^2."""

from __future__ import annotations

from specverify.mutants.mutant import planted, with_parts
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Sample and match, with a second draw after a miss."""
    for i, token in enumerate(draft.tokens):
        p = target(prefix + draft.tokens[:i])
        if draws.categorical(p, ("target", i)) != token:
            return Verified((*draft.tokens[:i], draws.categorical(p, ("again", i))), accepted=i)
    end = len(draft.tokens)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("target", end))), end)


MUTANT = planted(
    "nasd",
    "match-then-fresh-sample",
    "draws again after a miss",
    with_parts("nasd", verifier=verify),
    category="A",
    citation="romsto/Speculative-Decoding ngram_assisted.py at db7db67; REST and Medusa nucleus modes",
    killed_by="law_is_target",
)
