"""A draft whose ratio is bad is taken out of the block before its coin is thrown, and its place is sampled from p."""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, chain
from specverify.reference.trees import child_pmf
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Cut the block before the first draft with p/q < 1/2."""
    rows = [target(prefix + draft.tokens[:i]) for i in range(len(draft.tokens))]
    q = [child_pmf(draft, i, p) for i, p in enumerate(rows)]
    ratios = [rows[i][token] / q[i][token] for i, token in enumerate(draft.tokens)]
    kept = next((i for i, ratio in enumerate(ratios) if ratio < Fraction(1, 2)), len(ratios))
    return speculative_sampling(draws, target, prefix, chain(draft.tokens[:kept], draft.pmfs[:kept]))


MUTANT = planted(
    "speculative-sampling",
    "dropped-by-ratio",
    "takes back drafts with small p/q",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
