"""A draft that the target finds unlikely is taken out of the block and its place sampled anew."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, chain
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Cut the block before the first draft with p(d) < 1/3."""
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens))]
    kept = next((i for i, t in enumerate(draft.tokens) if rows[i][t] < Fraction(1, 3)), len(rows))
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


MUTANT = planted(
    "speculative-sampling",
    "dropped-by-target",
    "takes back drafts with small p",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
