"""Block verification with the formulas of token verification: the longest prefix whose last coin fell right is kept."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
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


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Ask from the longest prefix down, by min(1, p/q) of its last token alone; the residual is (p - q)+."""
    for length in range(len(draft.tokens), -1, -1):
        p = target(prefix + draft.tokens[:length])
        owed = p if length == len(draft.tokens) else residual(p, draft.pmfs[length])
        if length == 0 or _stays(draws, target(prefix + draft.tokens[: length - 1]), draft, length - 1):
            token = draws.categorical(owed, ("residual", length))
            return Verified((*draft.tokens[:length], token), accepted=length)
    raise AssertionError("the empty prefix always stays")


def _stays(draws: Draws, p: object, draft: Draft, i: int) -> bool:
    return flip(draws, accept_probability(p, draft.pmfs[i], draft.tokens[i]), ("accept", i))


def build(task: Task, gamma: int = 4) -> Decoder:
    """Block verification in name."""
    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "block-verification",
    "block-mode-token-formulas",
    "decides blocks by the last token's ratio",
    build,
    category="A",
    citation="vllm-ascend issue #7807, PR #7808 (2f4d55e7e8)",
    killed_by="law_is_target",
    examples=SHORT,
)
