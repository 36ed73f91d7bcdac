"""The tree is verified under a causal mask: a node sees its siblings as if they were before it in the text."""

from __future__ import annotations

from reference import Decoder, Draft, Draws, LanguageModel, Pmf, Task, Tokens, Verified
from reference.drafters.tree import tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import path_tokens, regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.mutants.mutant import planted


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection under a causal mask."""

    def row(tokens: Tokens) -> Pmf:
        texts = [prefix, *(prefix + path_tokens(draft, node) for node in range(len(draft.tokens)))]
        row = texts.index(tokens)
        return target(prefix + draft.tokens[:row])

    return recursive_rejection(draws, row, prefix, draft)


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD with rows of the wrong place."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), without_replacement), verify)


MUTANT = planted(
    "rsd",
    "mask-is-causal",
    "lets nodes see their siblings",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
