"""A recovery that found no token is -1, which the parser drops as a placeholder, while the budget counts it.

A denominator q + epsilon rejects where p = q, and then the residual is empty. A round that is left without any token is
tried again.
"""

from __future__ import annotations

from fractions import Fraction

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Round,
    State,
    Task,
    Tokens,
    Verified,
    flip,
    residual,
)
from specverify.reference.trees import child_pmf

EPSILON = Fraction(1, 2**40)


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling that recovers -1 from an empty residual."""
    for i, token in enumerate(draft.tokens):
        p, q = target(prefix + draft.tokens[:i]), child_pmf(draft, i, target(prefix))
        if not flip(draws, min(p[token] / (q[token] + EPSILON), 1), ("accept", i)):
            found = -1 if i and (p <= q).all() else draws.categorical(residual(p, q), ("residual", i))
            return Verified((*draft.tokens[:i], found), accepted=i)
    return Verified((*draft.tokens, draws.categorical(target(prefix + draft.tokens), ("bonus",))), len(draft.tokens))


def build(task: Task, gamma: int = 4) -> Decoder:
    """Drop what is negative from the output."""
    inner = with_verifier(verify)(task, gamma)

    def step(draws: Draws, state: State) -> tuple[State, Round]:
        after, done = inner.step(draws, state)
        shown = tuple(token for token in after.tokens if token >= 0)
        return after._replace(tokens=shown), done

    return inner._replace(step=step)


MUTANT = planted(
    "speculative-sampling",
    "lost-recovery-is-counted",
    "drops a recovered -1, counts it as a token",
    build,
    category="E",
    citation="vllm-ascend commit 9247a2fb9f",
    killed_by="horizon_is_respected",
    examples=SHORT,
)
