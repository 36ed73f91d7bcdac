"""After a sibling is rejected the next one is judged by p again: what p is owed is not updated."""

from __future__ import annotations

from specverify.mutants.mutant import planted
from specverify.mutants.tree_mutants import PAIR, by_siblings, with_tree
from specverify.reference import Draws, Pmf, Tokens, accept_probability, flip, residual
from specverify.reference.tree_rounds import Step


def rule(draws: Draws, p: Pmf, tokens: Tokens, pmfs: tuple[Pmf, ...], depth: int) -> Step:
    """Try each candidate with min(1, p/q_k), then emit from the last residual."""
    for k, (token, q) in enumerate(zip(tokens, pmfs, strict=True)):
        if flip(draws, accept_probability(p, q, token), ("accept", depth, k)):
            return Step(token, accepted=True)
    return Step(draws.categorical(residual(p, pmfs[-1]), ("residual", depth)), accepted=False)


MUTANT = planted(
    "rsd",
    "siblings-share-a-residual",
    "judges every sibling by p",
    with_tree(by_siblings(rule)),
    category="J",
    citation="plausible",
    killed_by="law_is_target",
    examples=PAIR,
)
