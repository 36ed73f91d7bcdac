"""Every draft is thrown away and p is sampled: lossless, and no faster than no speculation at all."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """One draw from the target, whatever was drafted."""
    return Verified((draws.categorical(target(prefix), ("target", 0)),), accepted=0)


MUTANT = planted(
    "speculative-sampling",
    "always-reject",
    "rejects every draft and samples p",
    with_verifier(verify),
    category="Q",
    citation="plausible",
    killed_by="acceptance_is_optimal",
    examples=SHORT,
)
