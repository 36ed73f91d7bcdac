"""After a sibling is rejected only its own entry of what is owed is reduced, instead of the whole of q."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, by_siblings, with_tree
from specverify.reference import Draws, Pmf, Tokens, accept_probability, excess_law, flip, one_hot
from specverify.reference.tree_rounds import Step


def try_in_turn(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Recursive rejection that subtracts q(d) at d alone."""
    owed = p
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(owed, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
        owed = excess_law(owed, one_hot(token, q) * q[token])
    return Step(draws.categorical(owed, ("residual", depth)), accepted=False)


MUTANT = planted(
    "rsd",
    "tree-subtracts-one-entry",
    "reduces p at the rejected token alone",
    with_tree(by_siblings(try_in_turn)),
    category="C",
    citation="EAGLE issue #20, commit 2f982e2",
    killed_by="law_is_target",
    examples=PAIR,
)
