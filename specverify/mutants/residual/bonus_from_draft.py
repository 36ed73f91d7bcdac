"""The token after the last draft comes from the drafter, which has one ready."""

from __future__ import annotations

from specverify.mutants.mutant import SHORT, planted, with_verifier
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def build(task: Task, gamma: int = 4) -> Decoder:
    """Speculative sampling whose bonus token is q's."""
    draft_of = draft_model(task)

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        def rows(tokens: Tokens) -> object:
            return draft_of(tokens) if tokens == prefix + draft.tokens else target(tokens)

        return speculative_sampling(draws, rows, prefix, draft)

    return with_verifier(verify)(task, gamma)


MUTANT = planted(
    "speculative-sampling",
    "bonus-from-draft",
    "draws the bonus from q",
    build,
    category="C",
    citation="plausible",
    killed_by="law_is_target",
    examples=SHORT,
)
