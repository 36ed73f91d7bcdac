"""The grammar's state is moved by every draft and not rolled back: each row is masked behind the whole block."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.reference import Decoder, Draft, Draws, LanguageModel, Task, Tokens, Verified, chain_decoder, constant
from specverify.reference import model_drafter as drafting
from specverify.reference.algorithms.constrained_decoding import Grammar, allowed, masked_row
from specverify.reference.models import draft_model
from specverify.reference.verifiers.speculative_sampling import speculative_sampling


def build(task: Task, grammar: Grammar = (), gamma: int = 4) -> Decoder:
    """Constrained decoding with one mask a block, that of the state behind its last draft."""

    def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
        def masked(text: Tokens) -> object:
            p = target(text)
            return masked_row(p, allowed(grammar, prefix + draft.tokens, len(p)))

        return speculative_sampling(draws, masked, prefix, draft)

    return chain_decoder(task, drafting(draft_model(task)), constant(gamma), verify)


MUTANT = planted(
    "constrained-decoding",
    "grammar-sees-rejected-drafts",
    "masks by the grammar's state behind all drafts",
    build,
    category="G",
    citation="plausible: a matcher that is advanced over the block and never rolled back",
    killed_by="law_is_declared",
)
