"""Block verification, half done: blocks are accepted by their product of ratios, replaced from a token's residual."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, flip, residual
from specverify.reference.coupling import positive_part
from specverify.reference.verifiers.block_verification import capped_ratios


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Block verification whose residual is (p - q)+ instead of (w p - q)+."""
    gamma, q = len(draft.tokens), draft.pmfs
    p = [target(prefix + draft.tokens[:i]) for i in range(gamma + 1)]
    w = capped_ratios(p, list(q), draft.tokens)
    if gamma == 0 or flip(draws, w[gamma], ("accept", gamma - 1)):
        return Verified((*draft.tokens, draws.categorical(p[gamma], ("bonus",))), accepted=gamma)
    kept = gamma - 1
    while kept and not flip(draws, heads(w[kept], p[kept], q[kept]), ("accept", kept - 1)):
        kept -= 1
    replacement = draws.categorical(residual(p[kept], q[kept]), ("residual", kept))
    return Verified((*draft.tokens[:kept], replacement), accepted=kept)


def heads(w: Any, p: Any, q: Any) -> Any:
    """Return h = R / (R + 1 - w)."""
    spare = positive_part(w * p - q).sum()
    return spare / (spare + 1 - w) if spare > 0 or w < 1 else w


MUTANT = planted(
    "block-verification",
    "block-ratio-token-residual",
    "replaces a block's end by (p - q)+",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
