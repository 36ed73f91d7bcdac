"""A speculative cascade that accepts against the mixed model and replaces from the target's residual."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Task,
    Tokens,
    Verified,
    accept_probability,
    flip,
    residual,
)
from specverify.reference.algorithms.token_cascade import cascade


def build(task: Task, alpha: Any = Fraction(1, 2), gamma: int = 4) -> Decoder:
    """The token cascade with the wrong residual."""
    mixed = cascade(task, alpha)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        for i, token in enumerate(draft.tokens):
            before, q = prefix + draft.tokens[:i], draft.pmfs[i]
            if not flip(draws, accept_probability(mixed(before), q, token), ("accept", i)):
                replacement = draws.categorical(residual(target(before), q), ("residual", i))
                return Verified((*draft.tokens[:i], replacement), accepted=i)
        last = draws.categorical(mixed(prefix + draft.tokens), ("bonus",))
        return Verified((*draft.tokens, last), accepted=len(draft.tokens))

    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "token-cascade",
    "cascade-residual-of-target",
    "accepts for pi, replaces from (p - q)+",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
