"""The judge is asked about the last committed token instead of the token before the draft: wrong inside a block."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted, with_verifier
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Task,
    Tokens,
    Verified,
    accept_probability,
    residual,
)
from specverify.reference.algorithms.judge_decoding import Pairs
from specverify.reference.verifiers.accept_or_replace import accept_or_replace


def build(task: Task, correct: Pairs = (), gamma: int = 4) -> Decoder:
    """Judge decoding whose judge is not told the drafts before."""

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        def accept(before: Tokens, p: Pmf, q: Pmf, token: int) -> Any:
            return 1 if (prefix[-1], token) in correct else accept_probability(p, q, token)

        return accept_or_replace(accept, lambda p, q, token: residual(p, q))(draws, target, prefix, draft)

    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "judge-decoding",
    "judge-sees-the-prompt",
    "judges every draft by the round's first context",
    build,
    category="A",
    citation="plausible",
    killed_by="law_is_declared",
)
