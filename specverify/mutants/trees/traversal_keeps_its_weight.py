"""Traversal verification that gives a node's next child the weight that its first child had."""

from __future__ import annotations

from typing import Any

from specverify.mutants.mutant import planted
from specverify.reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Task,
    Tokens,
    Verified,
    accept_probability,
    excess_law,
    flip,
)
from specverify.reference.drafters.tree import tree_drafter, without_replacement
from specverify.reference.models import draft_model
from specverify.reference.tree_rounds import tree_decoder
from specverify.reference.trees import child_pmf, children, path_tokens, regular_tree


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Traversal without an update of the weight."""

    def enter(node: int, weight: Any) -> Verified | None:
        text = path_tokens(draft, node)
        owed = target(prefix + text)
        for child in children(draft.parents, (node,)):
            q = child_pmf(draft, child, owed)
            found = enter(child, accept_probability(weight * owed, q, draft.tokens[child]))
            if found:
                return found
            owed = excess_law(weight * owed, q) if (weight * owed > q).any() else owed
        if node < 0 or flip(draws, weight, ("accept", node)):
            return Verified((*text, draws.categorical(owed, ("bonus", node))), accepted=len(text))
        return None

    found = enter(-1, 1)
    assert found is not None
    return found


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1), replacement: bool = False) -> Decoder:
    """Traversal of a tree without replacement."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), without_replacement), verify)


MUTANT = planted(
    "traversal-verification",
    "traversal-keeps-its-weight",
    "enters later children with the old weight",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (1, 1), "replacement": False},),
)
