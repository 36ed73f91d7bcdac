"""Drafts are verified under the target's ids and emitted under the drafter's: text without errors and without sense."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Speculative sampling; the drafter's id of token t is t + 1."""
    found = speculative_sampling(draws, target, prefix, draft)
    size, n = len(target(prefix)), found.accepted
    return Verified((*((token + 1) % size for token in found.tokens[:n]), *found.tokens[n:]), n)


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling that does not map accepted drafts."""
    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "speculative-sampling",
    "emitted-in-draft-ids",
    "emits drafts by the drafter's ids",
    build,
    category="N",
    citation="EAGLE issue #258",
    killed_by="law_is_target",
    examples=SHORT,
)
