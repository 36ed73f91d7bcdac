"""A recovery without any positive lane is won by the padding: its id is the size of the vocabulary.

A denominator q + epsilon rejects where p = q, and then the residual is empty.
"""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Draft, Draws, LanguageModel, Tokens, Verified, flip, residual
from specverify.reference.trees import child_pmf

EPSILON = Fraction(1, 2**40)


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling on a vocabulary padded to whole blocks."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), child_pmf(draft, i, target(prefix))
        if not flip(draws, min(p[token] / (q[token] + EPSILON), 1), ("accept", i)):
            if (p <= q).all():
                return Verified((*draft.tokens[:i], len(p)), accepted=i)
            return Verified((*draft.tokens[:i], draws.categorical(residual(p, q), ("residual", i))), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


MUTANT = planted(
    "speculative-sampling",
    "padded-lane-wins",
    "emits the id of a padded lane",
    with_verifier(verify),
    category="E",
    citation="vLLM PR #45060, issue #53029, PR #50183",
    killed_by="tokens_are_supported",
    examples=SHORT,
)
