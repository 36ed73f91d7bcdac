"""Random numbers come from a count of calls since the engine started: no request can be repeated."""

from __future__ import annotations

from itertools import count

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, residual

_CALLS = count(1)
GOLDEN = 0.6180339887498949


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling with coins from a counter."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not next(_CALLS) * GOLDEN % 1 < accept_probability(p, q, token):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "counted-calls",
    "draws depend on how often it was called",
    with_verifier(verify),
    category="D",
    citation="TensorRT-LLM PR #17599",
    killed_by="program_is_its_draws",
)
