"""After a sibling is rejected the next one is judged by p again: what p is owed is not updated."""

from __future__ import annotations

from reference import (
    Decoder,
    Draft,
    Draws,
    LanguageModel,
    Pmf,
    Task,
    Tokens,
    Verified,
    accept_probability,
    flip,
    residual,
)
from reference.drafters.tree import tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import Step, descend, tree_decoder
from reference.trees import regular_tree
from specverify.mutants.mutant import planted


def rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Try each candidate with min(1, p/q_k), then emit from the last residual."""
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(p, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, pmfs[-1]), ("residual", depth)), accepted=False)


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Apply the rule level by level."""
    return descend(draws, target, prefix, draft, rule)


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """A tree with that rule."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), without_replacement), verify)


MUTANT = planted(
    "rsd",
    "siblings-share-a-residual",
    "judges every sibling by p",
    build,
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
