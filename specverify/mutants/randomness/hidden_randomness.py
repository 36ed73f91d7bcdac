"""Part of the verification draws from a generator of its own: runs cannot be replayed."""

from __future__ import annotations

import numpy as np

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, accept_probability, residual

_HIDDEN = np.random.default_rng(7)


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling whose acceptance coins come from elsewhere."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), draft.pmfs[i]
        if not _HIDDEN.random() < accept_probability(p, q, token):
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "hidden-randomness",
    "its coins do not come from draws",
    with_verifier(verify),
    category="D",
    citation="lattice issue #388; local-inference-lab/vllm PR #98",
    killed_by="program_is_its_draws",
    examples=SHORT,
)
