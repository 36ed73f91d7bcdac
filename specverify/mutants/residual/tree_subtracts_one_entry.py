"""After a sibling is rejected only its own entry of what is owed is reduced, instead of the whole of q."""

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
    excess_law,
    flip,
    one_hot,
)
from reference.drafters.tree import tree_drafter, without_replacement
from reference.models import draft_model
from reference.tree_rounds import Step, descend, tree_decoder
from reference.trees import regular_tree
from specverify.mutants.mutant import planted


def try_in_turn(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Recursive rejection that subtracts q(d) at d alone."""
    owed = p
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(owed, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
        owed = excess_law(owed, one_hot(token, q) * q[token])
    return Step(draws.categorical(owed, ("residual", depth)), accepted=False)


def verify(draws: Draws, target: LanguageModel, prefix: Tokens, draft: Draft) -> Verified:
    """Recursive rejection with the wrong residual."""
    return descend(draws, target, prefix, draft, try_in_turn)


def build(task: Task, branching: tuple[int, ...] = (2, 2, 1)) -> Decoder:
    """RSD with the wrong residual."""
    return tree_decoder(task, tree_drafter(draft_model(task), regular_tree(branching), without_replacement), verify)


MUTANT = planted(
    "rsd",
    "tree-subtracts-one-entry",
    "reduces p at the rejected token alone",
    build,
    category="C",
    citation="EAGLE issue #20, commit 2f982e2",
    killed_by="law_is_target",
    examples=({"branching": (2,)},),
)
