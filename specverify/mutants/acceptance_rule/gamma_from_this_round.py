"""The draft length is adapted to the round's own outcome before it is committed: a replacement is never emitted."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, chain
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """After a rejection, shorten gamma to the accepted drafts and go on as if no more had been drafted."""
    first = speculative_sampling(draws, target, prefix, draft)
    if first.accepted == len(draft.tokens):
        return first
    shorter = chain(draft.tokens[: first.accepted], draft.pmfs[: first.accepted])
    bonus = draws.categorical(target(prefix + shorter.tokens), ("shorter",))
    return Verified((*shorter.tokens, bonus), first.accepted)


MUTANT = planted(
    "speculative-sampling",
    "gamma-from-this-round",
    "shortens gamma by the coins of the same round",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
