"""Tree verification reads a slice of the logits that begins one row off: a node is judged by its neighbour's row."""

from __future__ import annotations

from reference import Decoder, Draft, Draws, LanguageModel, Pmf, Task, Tokens, Verified
from reference.drafters.tree import tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import tree_decoder
from reference.trees import path_tokens, regular_tree
from reference.verifiers.recursive_rejection import recursive_rejection
from specverify.mutants.mutant import planted


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection on logits without the root's row."""

    def row(tokens: Tokens) -> Pmf:
        texts = [prefix, *(prefix + path_tokens(draft, node) for node in range(len(draft.tokens)))]
        row = texts.index(tokens)
        return target(texts[max(row - 1, 0)])

    return recursive_rejection(draws, row, prefix, draft)


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD with rows of the wrong place."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), without_replacement), verify)


MUTANT = planted(
    "rsd",
    "logits-slice-off-by-one",
    "judges a node by the row before",
    build,
    category="J",
    citation="TensorRT-LLM PR #15098",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
