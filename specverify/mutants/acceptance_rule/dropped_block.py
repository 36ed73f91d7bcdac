"""A block is thrown away because of its first token: what is kept was chosen by what was drawn."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, chain
from specverify.reference.trees import child_pmf
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Draft nothing after all where q of the first draft is below 1/3."""
    unsure = bool(draft.tokens) and child_pmf(draft, 0, target(prefix))[draft.tokens[0]] < Fraction(1, 3)
    kept = 0 if unsure else len(draft.tokens)
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


MUTANT = planted(
    "speculative-sampling",
    "dropped-block",
    "drops a block that begins unsurely",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
