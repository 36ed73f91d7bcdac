"""Block verification without the cap: the product of ratios may pass 1 and make up for an unlikely draft later on."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, excess_law, flip
from specverify.reference.coupling import positive_part


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Block verification by the plain product of p/q."""
    gamma, q = len(draft.tokens), draft.pmfs
    p = [target(prefix + draft.tokens[:i]) for i in range(gamma + 1)]
    w = [p[0].sum(), *(ratio(p, q, draft.tokens[: i + 1]) for i in range(gamma))]
    if gamma == 0 or flip(draws, min(w[gamma], 1), ("accept", gamma - 1)):
        return Verified((*draft.tokens, draws.categorical(p[gamma], ("bonus",))), accepted=gamma)
    kept = gamma - 1
    while kept and not flip(draws, heads(w[kept], p[kept], q[kept]), ("accept", kept - 1)):
        kept -= 1
    replacement = draws.categorical(excess_law(w[kept] * p[kept], q[kept]), ("residual", kept))
    return Verified((*draft.tokens[:kept], replacement), accepted=kept)


def heads(w: Any, p: Any, q: Any) -> Any:
    """Return h = R / (R + 1 - w), at most 1."""
    spare = positive_part(w * p - q).sum()
    return spare / (spare + 1 - w) if w < 1 else 1


def ratio(p: list[Any], q: tuple[Any, ...], tokens: Tokens) -> Any:
    """Return the product of p/q over ``tokens``."""
    product = p[0].sum()
    for i, token in enumerate(tokens):
        product = product * p[i][token] / q[i][token]
    return product


MUTANT = planted(
    "block-verification",
    "block-ratio-not-capped",
    "lets the product of ratios pass 1",
    with_verifier(verify),
    category="A",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
