"""Target rows are read one position early: draft i is judged by the row that predicted draft i-1."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, flip, residual


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling, every row after the first off by one."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[: max(i - 1, 0)]), draft.pmfs[i]
        if not flip(draws, accept_probability(p, q, token), ("accept", i)):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "row-off-by-one",
    "judges draft i by the row before its own",
    with_verifier(verify),
    category="A",
    citation="FlashInfer PR #425; transformers PR #28166",
    killed_by="law_is_target",
    examples=SHORT,
)
